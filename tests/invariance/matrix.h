#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/compute_options.h"
#include "kernels/compute_mode.h"

namespace millrace::testing {

// One way to run a model; none of it but the mode may change a bit of any
// answer.
struct Configuration {
  int64_t stages = 1;
  int threads = 1;
  int64_t chunk = 512;
  kernels::Isa isa = kernels::Isa::kScalar;
  cli::TransportChoice transport = cli::TransportChoice::kInProcess;
  kernels::ComputeMode mode = kernels::ComputeMode::kFast;

  bool operator==(const Configuration&) const = default;
};
std::string Describe(const Configuration& configuration);

// The values of each dimension; the first ones together are the base.
struct Dimensions {
  std::vector<int64_t> stages;
  std::vector<int> threads = {1, 2};
  std::vector<int64_t> chunks = {512, 1, 7, 64};
  std::vector<kernels::Isa> isas;
  std::vector<cli::TransportChoice> transports = {
      cli::TransportChoice::kInProcess, cli::TransportChoice::kTcp};
  std::vector<kernels::ComputeMode> modes = {kernels::ComputeMode::kFast,
                                             kernels::ComputeMode::kExact};
};
// Stages 1, 2, 3, 5 and one for each layer up to 30; every instruction set that
// this host has, the scalar definition last since it is slow in combinations;
// the others are named on stdout.
Dimensions AllDimensions(int64_t num_layers);

// Every combination, the base first.
std::vector<Configuration> FullProduct(const Dimensions& dimensions);
// The base, every other value alone beside base values, and further
// combinations until every pair of values of two dimensions has occurred.
std::vector<Configuration> EveryValueAndPair(const Dimensions& dimensions);

}  // namespace millrace::testing
