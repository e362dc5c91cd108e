#include "tests/simulation/fake_model.h"

#include <algorithm>

namespace millrace::coordinator {
namespace {

using transport::Result;
using transport::Row;
using transport::RowFailure;

uint64_t Mix(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  value ^= value >> 33;
  return value;
}

float LogprobOf(uint64_t state, int32_t token) {
  const uint64_t bits = Mix(state ^ (static_cast<uint64_t>(token) << 20));
  return -static_cast<float>(bits % 10000) / 1000.0F;
}

transport::TopTokens TopOf(uint64_t state, int64_t count) {
  transport::TopTokens top;
  for (int64_t i = 0; i < count; ++i) {
    const auto token =
        static_cast<int32_t>(Mix(state + static_cast<uint64_t>(i)) % 900);
    top.push_back({.token = token, .logprob = LogprobOf(state, token)});
  }
  return top;
}

}  // namespace

uint64_t FakeState(uint64_t seed) { return Mix(seed + 0x9e3779b97f4a7c15ULL); }

uint64_t FakeNext(uint64_t state, int32_t token) {
  return Mix(state * 31 + static_cast<uint64_t>(token) + 1);
}

Result FakeResult(uint64_t state, const Row& row, int64_t top_logprobs) {
  Result result;
  result.slot = row.slot;
  result.position = row.position;
  if (row.token == kFakePoison) {
    result.failure = RowFailure::kLogitsNotFinite;
    return result;
  }
  if (row.token == kFakeOverflow) {
    result.failure = RowFailure::kKvOverflow;
    return result;
  }
  if ((row.flags & transport::kRowWantsToken) != 0) {
    result.token = static_cast<int32_t>(state % 900);
    if ((row.flags & transport::kRowWantsLogprob) != 0) {
      result.logprob = LogprobOf(state, result.token);
      result.top = TopOf(state, top_logprobs);
    }
  }
  if ((row.flags & transport::kRowWantsScore) != 0) {
    result.logprob = LogprobOf(state, row.target);
    result.top = TopOf(state, top_logprobs);
  }
  if ((row.flags & transport::kRowWantsCrc) != 0) {
    result.logits_crc = static_cast<uint32_t>(state >> 32);
  }
  return result;
}

FakeAnswer FakeOracle(const GenerateRequest& request) {
  FakeAnswer answer;
  std::vector<int32_t> tokens = request.prompt;
  const size_t num_prompt = tokens.size();
  uint64_t state = FakeState(request.sampling.seed);
  for (size_t position = 0; position < tokens.size(); ++position) {
    state = FakeNext(state, tokens[position]);
    if (tokens[position] >= kFakeOverflow) {
      answer.fails = true;
      return answer;
    }
    const bool last = position + 1 == num_prompt;
    const auto crc = request.want_logits_crc
                         ? static_cast<uint32_t>(state >> 32)
                         : uint32_t{0};
    if (request.want_prompt_scores && position + 1 < num_prompt) {
      answer.scores.push_back(
          {.position = static_cast<int64_t>(position) + 1,
           .logprob = LogprobOf(state, tokens[position + 1]),
           .top = TopOf(state, request.top_logprobs),
           .logits_crc = crc});
    }
    if (request.want_prompt_scores && last && request.want_logits_crc) {
      answer.scores.push_back({.position = static_cast<int64_t>(num_prompt),
                               .logprob = 0,
                               .top = {},
                               .logits_crc = crc});
    }
    if (position + 1 < num_prompt || request.tokens_max == 0) {
      continue;
    }
    const auto token = static_cast<int32_t>(state % 900);
    TokenEvent event{.token = token,
                     .position = static_cast<int64_t>(position) + 1,
                     .logprob = 0,
                     .top = {},
                     .logits_crc = crc};
    if (request.want_logprobs) {
      event.logprob = LogprobOf(state, token);
      event.top = TopOf(state, request.top_logprobs);
    }
    answer.tokens.push_back(event);
    const auto& stops = request.stop_tokens;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      answer.reason = FinishReason::kStop;
      return answer;
    }
    if (static_cast<int64_t>(answer.tokens.size()) == request.tokens_max) {
      return answer;
    }
    tokens.push_back(token);
  }
  return answer;
}

}  // namespace millrace::coordinator
