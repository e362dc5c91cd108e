#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/engine.h"
#include "kernels/compute_mode.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/invariance/matrix.h"
#include "tests/support/pipeline_run.h"

namespace millrace::testing {

// What is asked of a model in every configuration: one prompt, greedy with the
// CRC and score of every row and sampled with a seed and every filter, alone
// and among others.
struct Workload {
  coordinator::GenerateRequest greedy;
  coordinator::GenerateRequest sampled;
  std::vector<coordinator::GenerateRequest> others;
  int64_t context = 0;
  int64_t sequences = 1;  // worst cases that the pools hold
};

struct WorkloadSize {
  int64_t vocab_size = 0;
  int64_t prompt_tokens = 0;
  int64_t tokens_max = 0;
  // The i-th of 16 others has 1 + i % other_prompt_max tokens.
  int64_t other_prompt_max = 1;
  int64_t other_tokens_max = 1;
};
// Ids 3 and up, made from fixed formulas.
Workload MakeWorkload(const WorkloadSize& size);

struct Observed {
  Outcome greedy;  // alone
  Outcome sampled;
  Outcome greedy_among_others;
  Outcome sampled_among_others;
  std::vector<Outcome> others;
};

// Loads the model as configured and runs the workload.
absl::StatusOr<Observed> Observe(const model::Checkpoint& checkpoint,
                                 const Configuration& configuration,
                                 kernels::KvType kv_type,
                                 const Workload& workload);

// Where `got` differs from `want`, first difference; empty: nowhere.
std::string Difference(const Outcome& got, const Outcome& want);
// The same over all outcomes; those among others must equal those alone.
std::string Difference(const Observed& got, const Observed& want);

}  // namespace millrace::testing
