#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"

namespace millrace::cli {

// The middle value, of an even number the mean of the two in the middle; 0 of
// none.
double Median(std::vector<double> values);
// None where a value is missing, or of no values.
std::optional<double> Median(const std::vector<std::optional<double>>& values);

// A number measured in several rounds.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
  int64_t rounds = 0;

  // Half of what lies between the lowest and the highest, as a share of the
  // median; 0 of none.
  [[nodiscard]] double Share() const;
};
Spread SpreadOf(const std::vector<double>& values);

// When things happened to one sequence, on one clock.
struct SequenceTimes {
  absl::Duration submitted;
  std::vector<absl::Duration> tokens;  // of each generated token, ascending
};

// How fast sequences decoded while all of them did.
struct DecodeRate {
  int64_t tokens = 0;        // generated in that time, by all
  double tokens_per_s = 0;   // by all together
  double token_seconds = 0;  // mean time between two tokens of one sequence
};

// From the first token of the sequence that began last to the last token of the
// one that ended first. Every sequence counts its tokens between the first and
// the last that fall into that time, so that nothing hangs on which came a
// little earlier. Zeros where some sequence has fewer than two there.
DecodeRate CommonDecodeRate(std::span<const SequenceTimes> sequences);

}  // namespace millrace::cli
