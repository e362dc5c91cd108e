#include "coordinator/api/request_workers.h"

#include <utility>

namespace millrace::coordinator {

RequestWorkers::RequestWorkers(int num_threads, size_t queue_max)
    : queue_(queue_max) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this]() noexcept { Work(); });
  }
}

RequestWorkers::~RequestWorkers() {
  queue_.Close();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

bool RequestWorkers::TrySubmit(std::function<void()> task) {
  return queue_.TryPush(std::move(task));
}

void RequestWorkers::Work() noexcept {
  while (auto task = queue_.Pop()) {
    (*task)();
  }
}

}  // namespace millrace::coordinator
