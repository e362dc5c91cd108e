#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"

namespace millrace::cli {

struct ReadyWorker {
  std::string name;
  int64_t pid = 0;
  int64_t first_layer = 0;
  int64_t last_layer = 0;  // included
};

// Says that the server takes requests: the event `ready` of --json, or a line
// for people. `workers` only where there are processes of their own.
void ReportReady(Console& console, const std::string& url,
                 const std::vector<ReadyWorker>& workers);

}  // namespace millrace::cli
