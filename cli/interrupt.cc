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
std::atomic<bool> ends_program{false};
int wake_pipe[2] = {-1, -1};

// The first asks, the second means "at once"; who sends another has waited for
// something that does not come.
constexpr int kInterruptsMost = 3;

// For a reader that is slow, not gone, when an interrupt comes.
constexpr int kRoomMilliseconds = 1000;

void OnSignal(int number) {
  const int saved = errno;
  if (number == SIGTERM) {
    terminated.store(true, std::memory_order_relaxed);
  }
  if (interrupts.fetch_add(1, std::memory_order_relaxed) + 1 >=
          kInterruptsMost ||
      ends_program.load(std::memory_order_relaxed)) {
    _exit(kExitInterrupted);
  }
  const char byte = 0;
  [[maybe_unused]] const ssize_t put = write(wake_pipe[1], &byte, 1);
  errno = saved;
}

void EmptyPipe() {
  char bytes[64];
  while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0) {
  }
}

// Waits until `descriptor` is ready for one of `events`, or will never be;
// false when an interrupt came first, or was there already.
bool AwaitReady(int descriptor, short events) {
  pollfd descriptors[] = {{descriptor, events, 0}, {wake_pipe[0], POLLIN, 0}};
  while (Interrupts() == 0) {
    if (poll(descriptors, 2, -1) > 0 && descriptors[0].revents != 0) {
      return true;
    }
    // An interrupt on another thread may write after it was forgotten.
    if (Interrupts() == 0) {
      EmptyPipe();
    }
  }
  return false;
}

}  // namespace

void HoldStandardStreams(char** argv) {
  bool any_closed = false;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // What exec passed on has no FD_CLOEXEC: a library, which may open an event
    // descriptor before main, has taken the place of one that was closed.
    const int flags = fcntl(descriptor, F_GETFD);
    if (flags != -1 && (flags & FD_CLOEXEC) == 0) {
      continue;
    }
    any_closed = true;
    // The wrong way round: reading what was closed fails, and so does writing.
    const int null =
        open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (null != descriptor) {
      dup2(null, descriptor);
      close(null);
    }
  }
  if (any_closed) {
    // Once more, with nothing of libraries in the way. Where that cannot be
    // done they lose what they opened, which is an error of theirs by name.
    execv("/proc/self/exe", argv);
  }
}

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
  // In this order: one that comes between is counted, and who waits looks at
  // the count first.
  interrupts.store(0, std::memory_order_relaxed);
  EmptyPipe();
  if (TerminationRequested()) {
    interrupts.store(1, std::memory_order_relaxed);  // that one stays
  }
}

InterruptEndsProgram::InterruptEndsProgram() {
  ends_program.store(true);
  if (Interrupts() > 0) {
    _exit(kExitInterrupted);  // came before
  }
}

InterruptEndsProgram::~InterruptEndsProgram() { ends_program.store(false); }

bool AwaitInterrupt(absl::Duration timeout) {
  const bool forever = timeout == absl::InfiniteDuration();
  const int milliseconds =
      forever ? -1 : static_cast<int>(absl::ToInt64Milliseconds(timeout));
  do {
    if (Interrupts() > 0) {
      return true;
    }
    pollfd descriptor = {wake_pipe[0], POLLIN, 0};
    poll(&descriptor, 1, milliseconds);
  } while (forever);
  return Interrupts() > 0;
}

bool AwaitInput(int descriptor) { return AwaitReady(descriptor, POLLIN); }

bool AwaitRoom(int descriptor) {
  pollfd room = {descriptor, POLLOUT, 0};
  return AwaitReady(descriptor, POLLOUT) ||
         poll(&room, 1, kRoomMilliseconds) > 0;
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
