#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace millrace::worker {

// One token that may still be drawn.
struct Candidate {
  float z = 0;  // logit after penalties and temperature
  int32_t id = 0;
};

// The order of the filters: z falling, ties to the lower id.
inline bool ComesBefore(const Candidate& a, const Candidate& b) {
  return a.z > b.z || (a.z == b.z && a.id < b.id);
}

// Both sort the tokens of a row by ComesBefore, but only as far as needed, into
// `out`, which has room for all of them. z holds no NaN.

// The first `k` tokens; 1 <= k <= z.size().
void SelectTopK(absl::Span<const float> z, int64_t k,
                std::vector<Candidate>& out);

// The shortest prefix whose running sum of weights, in double, is >= `target`;
// all tokens when none is. `weights` belongs to z, `max` is its largest
// element.
void SelectTopP(absl::Span<const float> z, absl::Span<const float> weights,
                float max, double target, std::vector<Candidate>& out);

// Shortens sorted candidates to the same prefix.
void CutTopP(absl::Span<const float> weights, double target,
             std::vector<Candidate>& candidates);

}  // namespace millrace::worker
