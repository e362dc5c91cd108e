#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/engine/engine.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// A language model that is a hash: what it says at a position depends on every
// token before it and on the seed, and on nothing else, so that any loss,
// repetition or mix-up of rows changes the answer.

inline constexpr int32_t kFakeVocabSize = 1000;
// Its logits are not finite where this token stands in the history.
inline constexpr int32_t kFakePoison = 999;
// Its keys overflow there.
inline constexpr int32_t kFakeOverflow = 998;

// State after the first token, and after each further one.
uint64_t FakeState(uint64_t seed);
uint64_t FakeNext(uint64_t state, int32_t token);

// What the last stage says about `row` when the state after its token is
// `state`.
transport::Result FakeResult(uint64_t state, const transport::Row& row,
                             int64_t top_logprobs);

struct FakeAnswer {
  std::vector<TokenEvent> tokens;
  std::vector<ScoreEvent> scores;
  FinishReason reason = FinishReason::kLength;
  bool fails = false;  // the history meets kFakePoison or kFakeOverflow
};

// The answer to `request` when nothing disturbs it, computed without any
// scheduling: the oracle.
FakeAnswer FakeOracle(const GenerateRequest& request);

}  // namespace millrace::coordinator
