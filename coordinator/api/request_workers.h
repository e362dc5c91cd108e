#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"

namespace millrace::coordinator {

// Threads for what would keep the connections' loop from other clients: JSON
// of megabytes, templates, tokenizing. First in, first out.
class RequestWorkers {
 public:
  RequestWorkers(int num_threads, size_t queue_max);
  // Runs what is queued to its end.
  ~RequestWorkers();
  RequestWorkers(const RequestWorkers&) = delete;
  RequestWorkers& operator=(const RequestWorkers&) = delete;

  // False when `queue_max` tasks wait. Any thread.
  [[nodiscard]] bool TrySubmit(std::function<void()> task);

 private:
  void Work() noexcept;

  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::coordinator
