#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "cli/console.h"

namespace millrace::cli {

// While it lives an interrupt ends the program at once: around computing that
// may take long, holds nothing that must be given back, and does not ask. Shows
// `what` as progress once it takes more than a second. The console is not used
// by others meanwhile.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt(std::string what, Console& console);
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;

 private:
  void Watch();

  const std::string what_;
  Console& console_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: uses what is above
};

}  // namespace millrace::cli
