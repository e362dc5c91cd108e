#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace millrace::cli {
namespace {

// Signal handlers can reach nothing but globals. The count is lock-free; the
// pipe wakes whoever waits.
std::atomic<int> interrupts{0};
std::atomic<bool> terminated{false};
int wake_pipe[2] = {-1, -1};

void OnSignal(int number) {
  const int saved = errno;
  if (number == SIGTERM) {
    terminated.store(true, std::memory_order_relaxed);
  }
  interrupts.fetch_add(1, std::memory_order_relaxed);
  const char byte = 0;
  [[maybe_unused]] const ssize_t put = write(wake_pipe[1], &byte, 1);
  errno = saved;
}

void EmptyPipe() {
  char bytes[64];
  while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0) {
  }
}

}  // namespace

void CatchInterrupts() {
  MILLRACE_CHECK(pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A closed pipe or socket is an error of that write, not of the program.
  signal(SIGPIPE, SIG_IGN);
}

int Interrupts() { return interrupts.load(std::memory_order_relaxed); }

bool TerminationRequested() {
  return terminated.load(std::memory_order_relaxed);
}

void ForgetInterrupts() {
  EmptyPipe();
  interrupts.store(0, std::memory_order_relaxed);
}

bool AwaitInterrupt(absl::Duration timeout) {
  if (Interrupts() > 0) {
    return true;
  }
  pollfd descriptor = {wake_pipe[0], POLLIN, 0};
  const int64_t milliseconds = absl::ToInt64Milliseconds(timeout);
  poll(&descriptor, 1,
       timeout == absl::InfiniteDuration() ? -1
                                           : static_cast<int>(milliseconds));
  return Interrupts() > 0;
}

bool AwaitInterruptAfter(int seen, absl::Duration timeout) {
  // Counted before written: what is missed here wakes the poll.
  EmptyPipe();
  if (Interrupts() == seen) {
    pollfd descriptor = {wake_pipe[0], POLLIN, 0};
    poll(&descriptor, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  }
  return Interrupts() > seen;
}

}  // namespace millrace::cli
