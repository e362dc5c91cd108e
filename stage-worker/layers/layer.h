#pragma once

#include <vector>

#include "stage-worker/layers/rope_tables.h"
#include "stage-worker/layers/step_context.h"
#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// What a layer does to the residual stream of one step, operation by
// operation: step.buffers.hidden is read and added to in place. The last
// products of each name step.next_weights as those that follow.

// The weights that the first products of an operation read, in their order.
std::vector<const LoadedMatrix*> FirstWeightsOf(const LoadedAttention& weights);
std::vector<const LoadedMatrix*> FirstWeightsOf(const LoadedDenseFfn& weights);
std::vector<const LoadedMatrix*> FirstWeightsOf(const LoadedMoeFfn& weights);

// Keys and values go into `kv` first, so that rows of one frame see each other.
// A finite key or value that overflows the stored type fails its row.
void RunAttention(StepContext& step, const LoadedAttention& weights,
                  const KvLayer& kv, const RopeTables& ropes);

void RunDenseFfn(StepContext& step, const LoadedDenseFfn& weights);

// Experts run over the tokens that chose them in waves, in ascending order:
// together as many as the buffers and one set of products hold
// (step.ffn_rows_max choices, kProductGroupsMax experts). Each token sums its
// own in the order of choice.
class ExpertStore;
void RunMoeFfn(StepContext& step, const LoadedMoeFfn& weights,
               ExpertStore& experts);

// y = rms_norm(x) over all rows of the step.
//   x, y [num_rows, width], row-major without gaps; y may be x
void NormRows(StepContext& step, const LoadedNorm& norm, const float* x,
              int64_t width, float* y);

// step.buffers.hidden += x over all rows of the step; x [num_rows, hidden].
void AddRows(StepContext& step, const float* x);

}  // namespace millrace::worker
