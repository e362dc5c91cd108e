#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/engine/engine.h"

namespace millrace::coordinator {

enum class SequenceState {
  kWaiting,  // in the queue: holds nothing
  kPrefill,  // admitted: reservation and slot held, prompt rows to send
  kDecode,   // all prompt rows are sent
};

// One live request. Owned by the core by id; the scheduler borrows it between
// AddPrefill and Remove.
struct Sequence {
  RequestId id = 0;
  GenerateRequest request;  // its prompt has moved into `tokens`
  SequenceState state = SequenceState::kWaiting;
  std::vector<int32_t> tokens;  // prompt, then what was generated
  int64_t num_prompt = 0;
  int64_t positions = 0;  // worst case: prompt + answer
  absl::Duration queued_at;

  uint32_t slot = 0;       // on every stage; valid once admitted
  bool opened = false;     // its open has left
  bool ready = false;      // decoding, and its next row is not under way
  int64_t next_row = 0;    // position of the next row to send
  int64_t next_score = 0;  // prompt row whose score is expected next

  [[nodiscard]] bool wants_token() const { return request.tokens_max > 0; }
  [[nodiscard]] int64_t prompt_left() const { return num_prompt - next_row; }
  [[nodiscard]] int64_t num_tokens() const {
    return static_cast<int64_t>(tokens.size());
  }
};

}  // namespace millrace::coordinator
