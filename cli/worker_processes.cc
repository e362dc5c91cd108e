#include "cli/worker_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace millrace::cli {
namespace {

// How often dead workers are looked for: soon enough that a cluster is back in
// a second or two, rarely enough to cost nothing.
constexpr absl::Duration kWatchInterval = absl::Milliseconds(250);
constexpr absl::Duration kRestartFirst = absl::Milliseconds(500);
constexpr absl::Duration kRestartMost = absl::Seconds(30);
// A worker that lived so long has not failed to start.
constexpr absl::Duration kStartedWell = absl::Seconds(10);

absl::Duration Now() { return SystemClock().Monotonic(); }

// Nothing but the standard streams goes on to a worker. With the sockets of
// clients, which libraries open as they like, it would keep connections open
// that this process has ended, and the port of one that died. Safe between fork
// and exec.
void LeaveDescriptorsBehind() {
  constexpr int kFirst = STDERR_FILENO + 1;
  if (close_range(kFirst, ~0U, 0) == 0) {
    return;
  }
  // A kernel before 5.9.
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t descriptor = kFirst; descriptor < limit.rlim_cur; ++descriptor) {
    close(static_cast<int>(descriptor));
  }
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) {
    return MakeError(absl::StatusCode::kInternal, "/proc/self/exe",
                     "cannot be read");
  }
  path[length] = '\0';
  std::vector<char*> argv = {path};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return MakeError(absl::StatusCode::kResourceExhausted, "worker",
                     absl::StrCat("cannot be started: ", ErrnoText(errno)));
  }
  if (pid == 0) {
    // Only calls that are safe between fork and exec. The worker goes when this
    // process goes; an interrupt of the terminal is the parent's to pass on.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
      _exit(1);
    }
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    LeaveDescriptorsBehind();
    execv(path, argv.data());
    _exit(127);
  }
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcesses>> WorkerProcesses::Start(
    std::vector<std::vector<std::string>> arguments) {
  std::unique_ptr<WorkerProcesses> processes(new WorkerProcesses());
  {
    MutexLock lock(processes->mutex_);
    for (std::vector<std::string>& line : arguments) {
      Worker worker;
      MILLRACE_ASSIGN_OR_RETURN(worker.pid, Spawn(line));
      worker.arguments = std::move(line);
      worker.started_at = Now();
      processes->workers_.push_back(std::move(worker));
    }
  }
  processes->watcher_ = std::thread([raw = processes.get()] { raw->Watch(); });
  return processes;
}

WorkerProcesses::~WorkerProcesses() { Stop(absl::Seconds(3)); }

std::vector<pid_t> WorkerProcesses::pids() const {
  MutexLock lock(mutex_);
  std::vector<pid_t> pids;
  for (const Worker& worker : workers_) {
    pids.push_back(worker.pid);
  }
  return pids;
}

void WorkerProcesses::ReapLocked() {
  for (Worker& worker : workers_) {
    int status = 0;
    if (worker.pid == 0 || waitpid(worker.pid, &status, WNOHANG) <= 0) {
      continue;
    }
    const absl::Duration now = Now();
    worker.failures =
        now - worker.started_at > kStartedWell ? 0 : worker.failures + 1;
    worker.restart_at =
        now + std::min(kRestartMost,
                       kRestartFirst * (1 << std::min(worker.failures, 6)));
    if (!stopping_) {
      MILLRACE_LOG(Warning)
          << "worker process " << worker.pid
          << (WIFSIGNALED(status)
                  ? absl::StrCat(" was ended by signal ", WTERMSIG(status))
                  : absl::StrCat(" ended with exit code ", WEXITSTATUS(status)))
          << "; it will be started anew";
    }
    worker.pid = 0;
  }
}

void WorkerProcesses::RestartDueLocked() {
  const absl::Duration now = Now();
  for (Worker& worker : workers_) {
    if (worker.pid != 0 || now < worker.restart_at) {
      continue;
    }
    const absl::StatusOr<pid_t> pid = Spawn(worker.arguments);
    if (pid.ok()) {
      worker.pid = *pid;
      worker.started_at = now;
    } else {
      worker.restart_at = now + kRestartMost;
      MILLRACE_LOG(Error) << pid.status().message();
    }
  }
}

void WorkerProcesses::Watch() noexcept {
  MutexLock lock(mutex_);
  while (!stopping_) {
    stop_.WaitFor(mutex_, kWatchInterval);
    ReapLocked();
    if (!stopping_) {
      RestartDueLocked();
    }
  }
}

void WorkerProcesses::LetEnd() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
}

void WorkerProcesses::Stop(absl::Duration deadline) {
  LetEnd();
  if (watcher_.joinable()) {
    watcher_.join();
  }
  const absl::Duration end = Now() + deadline;
  const auto signal_all = [this](int number) {
    MutexLock lock(mutex_);
    for (const Worker& worker : workers_) {
      if (worker.pid > 0) {
        kill(worker.pid, number);
      }
    }
  };
  const auto all_gone = [this] {
    MutexLock lock(mutex_);
    ReapLocked();
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.pid == 0; });
  };
  signal_all(SIGTERM);
  while (!all_gone()) {
    if (Now() > end) {
      signal_all(SIGKILL);
    }
    MutexLock lock(mutex_);
    stop_.WaitFor(mutex_, absl::Milliseconds(20));
  }
}

}  // namespace millrace::cli
