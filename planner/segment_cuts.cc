#include "planner/segment_cuts.h"

#include <algorithm>
#include <limits>

namespace millrace::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Score {
  double slowest = kInfinity;
  double squares = kInfinity;
  bool operator<(const Score& other) const {
    return slowest != other.slowest ? slowest < other.slowest
                                    : squares < other.squares;
  }
};

}  // namespace

std::optional<std::vector<int64_t>> CutSegments(int64_t num_layers,
                                                int64_t num_stages,
                                                const SegmentTime& time) {
  if (num_stages < 1 || num_stages > num_layers) {
    return std::nullopt;
  }
  // best[end]: the stages so far cover [0, end); from[stage][end]: where that
  // stage begins.
  const auto width = static_cast<size_t>(num_layers) + 1;
  std::vector<Score> best(width);
  best[0] = {0, 0};
  std::vector<std::vector<int64_t>> from(static_cast<size_t>(num_stages),
                                         std::vector<int64_t>(width, 0));
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    std::vector<Score> next(width);
    for (int64_t end = stage + 1; end <= num_layers; ++end) {
      for (int64_t begin = stage; begin < end; ++begin) {
        const Score& upstream = best[static_cast<size_t>(begin)];
        if (upstream.slowest == kInfinity) {
          continue;
        }
        const std::optional<double> own = time(stage, begin, end);
        if (!own.has_value()) {
          continue;
        }
        const Score score = {std::max(upstream.slowest, *own),
                             upstream.squares + *own * *own};
        if (score < next[static_cast<size_t>(end)]) {
          next[static_cast<size_t>(end)] = score;
          from[static_cast<size_t>(stage)][static_cast<size_t>(end)] = begin;
        }
      }
    }
    best = std::move(next);
  }
  if (best[static_cast<size_t>(num_layers)].slowest == kInfinity) {
    return std::nullopt;
  }
  std::vector<int64_t> starts(static_cast<size_t>(num_stages), 0);
  int64_t end = num_layers;
  for (int64_t stage = num_stages - 1; stage >= 0; --stage) {
    end = from[static_cast<size_t>(stage)][static_cast<size_t>(end)];
    starts[static_cast<size_t>(stage)] = end;
  }
  return starts;
}

}  // namespace millrace::planner
