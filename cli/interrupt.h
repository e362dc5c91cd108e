#pragma once

#include "absl/time/time.h"

namespace millrace::cli {

// Exit code of a program that an interrupt ended.
inline constexpr int kExitInterrupted = 130;

// How long waiting for something else may go on before it looks for an
// interrupt.
inline constexpr absl::Duration kInterruptLag = absl::Milliseconds(100);

// Opens what the caller has closed of standard input, output and error, so that
// no file or socket takes their place and gets our output. Using them stays an
// error. First thing in main; the program may begin anew in it, with `argv`.
void HoldStandardStreams(char** argv);

// SIGINT and SIGTERM as something to ask or wait for. Made once, in main,
// before any other thread. Any thread may ask.
void CatchInterrupts();

// Number of interrupts so far; a second one means "at once". A third ends the
// program where it stands.
[[nodiscard]] int Interrupts();

// While it lives an interrupt ends the program where it stands, with
// kExitInterrupted: around reading that may take long, holds nothing that must
// be put away, and asks nobody. Main thread, one at a time. ExitOnInterrupt is
// for computing that shows progress.
class InterruptEndsProgram {
 public:
  InterruptEndsProgram();
  ~InterruptEndsProgram();
  InterruptEndsProgram(const InterruptEndsProgram&) = delete;
  InterruptEndsProgram& operator=(const InterruptEndsProgram&) = delete;
};

// Whether SIGTERM has come: the program is to end, whatever it does.
[[nodiscard]] bool TerminationRequested();

// Forgets the interrupts so far, but for SIGTERM: `chat` stops the answer, not
// the program.
void ForgetInterrupts();

// Waits until an interrupt comes; false when `timeout` passed first.
bool AwaitInterrupt(absl::Duration timeout);

// Waits until `descriptor` can be read or is at its end; false when an
// interrupt came first, or was there already.
[[nodiscard]] bool AwaitInput(int descriptor);

// Waits until some bytes, up to a page of them, can be written to `descriptor`
// without waiting, or writing would fail; false when an interrupt came and a
// second passed, or came first. Any thread.
[[nodiscard]] bool AwaitRoom(int descriptor);

// Waits until there are more interrupts than the `seen` that the caller knows
// of; false when `timeout`, which is finite, passed first. One thread at a
// time.
bool AwaitInterruptAfter(int seen, absl::Duration timeout);

}  // namespace millrace::cli
