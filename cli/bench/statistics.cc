#include "cli/bench/statistics.h"

#include <algorithm>

namespace millrace::cli {

double Median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

std::optional<double> Median(const std::vector<std::optional<double>>& values) {
  std::vector<double> all;
  for (const std::optional<double>& value : values) {
    if (!value.has_value()) {
      return std::nullopt;
    }
    all.push_back(*value);
  }
  return all.empty() ? std::nullopt : std::optional<double>(Median(all));
}

double Spread::Share() const {
  return median > 0 ? (high - low) / 2 / median : 0;
}

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) {
    return {};
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {Median(values), *low, *high, static_cast<int64_t>(values.size())};
}

DecodeRate CommonDecodeRate(std::span<const SequenceTimes> sequences) {
  absl::Duration begin = -absl::InfiniteDuration();
  absl::Duration end = absl::InfiniteDuration();
  for (const SequenceTimes& sequence : sequences) {
    if (sequence.tokens.empty()) {
      return {};
    }
    begin = std::max(begin, sequence.tokens.front());
    end = std::min(end, sequence.tokens.back());
  }
  DecodeRate rate;
  double seconds = 0;
  for (const SequenceTimes& sequence : sequences) {
    const auto first =
        std::lower_bound(sequence.tokens.begin(), sequence.tokens.end(), begin);
    const auto after = std::upper_bound(first, sequence.tokens.end(), end);
    if (after - first < 2) {
      return {};
    }
    const int64_t tokens = after - first - 1;
    const double time = absl::ToDoubleSeconds(*(after - 1) - *first);
    if (time <= 0) {
      return {};
    }
    rate.tokens += tokens;
    rate.tokens_per_s += static_cast<double>(tokens) / time;
    seconds += time;
  }
  if (rate.tokens > 0) {
    rate.token_seconds = seconds / static_cast<double>(rate.tokens);
  }
  return rate;
}

}  // namespace millrace::cli
