#include "cli/exit_on_interrupt.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cli/interrupt.h"

namespace millrace::cli {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(50);
constexpr absl::Duration kQuietFor = absl::Seconds(1);

}  // namespace

ExitOnInterrupt::ExitOnInterrupt(std::string what, Console& console)
    : what_(std::move(what)),
      console_(console),
      thread_([this]() noexcept { Watch(); }) {}

ExitOnInterrupt::~ExitOnInterrupt() {
  ended_.store(true, std::memory_order_relaxed);
  thread_.join();
  console_.Progress("");
}

void ExitOnInterrupt::Watch() {
  const SystemClock clock;
  const absl::Duration start = clock.Monotonic();
  while (!ended_.load(std::memory_order_relaxed)) {
    if (AwaitInterrupt(kLookEvery)) {
      console_.Progress("");
      _exit(kExitInterrupted);
    }
    const absl::Duration passed = clock.Monotonic() - start;
    if (passed > kQuietFor) {
      console_.Progress(
          absl::StrFormat("%s: %.0f s", what_, absl::ToDoubleSeconds(passed)));
    }
  }
}

}  // namespace millrace::cli
