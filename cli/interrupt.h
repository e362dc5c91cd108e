#pragma once

#include "absl/time/time.h"

namespace millrace::cli {

// SIGINT and SIGTERM as something to ask or wait for. Made once, in main,
// before any other thread. Any thread may ask.
void CatchInterrupts();

// Number of interrupts so far; a second one means "at once".
[[nodiscard]] int Interrupts();

// Whether SIGTERM has come: the program is to end, whatever it does.
[[nodiscard]] bool TerminationRequested();

// Forgets the interrupts so far: `chat` stops the answer, not the program.
void ForgetInterrupts();

// Waits until an interrupt comes; false when `timeout` passed first.
bool AwaitInterrupt(absl::Duration timeout);

// Waits until there are more interrupts than the `seen` that the caller knows
// of; false when `timeout`, which is finite, passed first. One thread at a
// time.
bool AwaitInterruptAfter(int seen, absl::Duration timeout);

}  // namespace millrace::cli
