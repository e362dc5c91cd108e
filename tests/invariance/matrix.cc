#include "tests/invariance/matrix.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"

namespace millrace::testing {
namespace {

constexpr size_t kNumDimensions = 6;
// The index of the value of each dimension.
using Point = std::array<size_t, kNumDimensions>;

Point SizesOf(const Dimensions& d) {
  return {d.stages.size(), d.threads.size(),    d.chunks.size(),
          d.isas.size(),   d.transports.size(), d.modes.size()};
}

Configuration At(const Dimensions& d, const Point& point) {
  return {.stages = d.stages[point[0]],
          .threads = d.threads[point[1]],
          .chunk = d.chunks[point[2]],
          .isa = d.isas[point[3]],
          .transport = d.transports[point[4]],
          .mode = d.modes[point[5]]};
}

std::vector<Point> AllPoints(const Point& sizes) {
  std::vector<Point> points = {Point{}};
  for (size_t dimension = 0; dimension < kNumDimensions; ++dimension) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (size_t value = 0; value < sizes[dimension]; ++value) {
        longer.push_back(point);
        longer.back()[dimension] = value;
      }
    }
    points = std::move(longer);
  }
  return points;
}

// Two dimensions with a value each.
using Pair = std::array<size_t, 4>;

std::vector<Pair> PairsOf(const Point& point) {
  std::vector<Pair> pairs;
  for (size_t a = 0; a < kNumDimensions; ++a) {
    for (size_t b = a + 1; b < kNumDimensions; ++b) {
      pairs.push_back({a, point[a], b, point[b]});
    }
  }
  return pairs;
}

// Adds the points that cover the most pairs not yet seen, until all are.
void CoverPairs(const std::vector<Point>& all, std::vector<Point>& chosen) {
  std::set<Pair> missing;
  for (const Point& point : all) {
    for (const Pair& pair : PairsOf(point)) {
      missing.insert(pair);
    }
  }
  const auto take = [&missing](const Point& point) {
    for (const Pair& pair : PairsOf(point)) {
      missing.erase(pair);
    }
  };
  for (const Point& point : chosen) {
    take(point);
  }
  while (!missing.empty()) {
    const Point* best = nullptr;
    int64_t best_count = 0;
    for (const Point& point : all) {
      const std::vector<Pair> pairs = PairsOf(point);
      const int64_t count = std::count_if(
          pairs.begin(), pairs.end(),
          [&](const Pair& pair) { return missing.count(pair) > 0; });
      if (count > best_count) {
        best = &point;
        best_count = count;
      }
    }
    take(*best);
    chosen.push_back(*best);
  }
}

}  // namespace

std::string Describe(const Configuration& c) {
  return absl::StrCat(
      c.stages, " stages, ", c.threads, " threads, chunk ", c.chunk, ", ",
      kernels::IsaName(c.isa), ", ",
      c.transport == cli::TransportChoice::kTcp ? "tcp" : "in process", ", ",
      c.mode == kernels::ComputeMode::kExact ? "exact" : "fast");
}

Dimensions AllDimensions(int64_t num_layers) {
  Dimensions dimensions;
  for (const int64_t stages : {1, 2, 3, 5}) {
    if (stages < num_layers) {
      dimensions.stages.push_back(stages);
    }
  }
  dimensions.stages.push_back(std::min<int64_t>(num_layers, 30));
  for (const kernels::Isa isa :
       {kernels::Isa::kAvx512, kernels::Isa::kAvx2, kernels::Isa::kScalar}) {
    if (kernels::HostSupports(isa)) {
      dimensions.isas.push_back(isa);
    } else {
      std::cout << "skipped, since this host lacks it: "
                << kernels::IsaName(isa) << "\n";
    }
  }
  return dimensions;
}

std::vector<Configuration> FullProduct(const Dimensions& dimensions) {
  std::vector<Configuration> out;
  for (const Point& point : AllPoints(SizesOf(dimensions))) {
    out.push_back(At(dimensions, point));
  }
  return out;
}

std::vector<Configuration> EveryValueAndPair(const Dimensions& dimensions) {
  const Point sizes = SizesOf(dimensions);
  std::vector<Point> chosen = {Point{}};
  for (size_t dimension = 0; dimension < kNumDimensions; ++dimension) {
    for (size_t value = 1; value < sizes[dimension]; ++value) {
      chosen.push_back(Point{});
      chosen.back()[dimension] = value;
    }
  }
  CoverPairs(AllPoints(sizes), chosen);
  std::vector<Configuration> out;
  for (const Point& point : chosen) {
    out.push_back(At(dimensions, point));
  }
  return out;
}

}  // namespace millrace::testing
