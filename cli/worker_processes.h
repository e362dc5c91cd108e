#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace millrace::cli {

// The worker processes of `up`: started, watched, started anew when one dies,
// and ended with this object. Any thread.
class WorkerProcesses {
 public:
  // One command line per worker, without the program's own path.
  static absl::StatusOr<std::unique_ptr<WorkerProcesses>> Start(
      std::vector<std::vector<std::string>> arguments);
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Process ids, in the order of the command lines; 0 for one that is down.
  [[nodiscard]] std::vector<pid_t> pids() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From here on workers may end: none is started anew.
  void LetEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks all to end, waits at most `deadline`, then ends them the hard way.
  void Stop(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Worker {
    std::vector<std::string> arguments;
    pid_t pid = 0;
    int failures = 0;
    absl::Duration restart_at;
    absl::Duration started_at;
  };

  WorkerProcesses() = default;
  void Watch() noexcept;
  void RestartDueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReapLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar stop_;
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace millrace::cli
