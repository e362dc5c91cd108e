#include "stage-worker/layers/layer.h"
#include "stage-worker/layers/products.h"

namespace millrace::worker {

std::vector<const LoadedMatrix*> FirstWeightsOf(const LoadedDenseFfn& weights) {
  return {&weights.gate.weight, &weights.up.weight};
}

void RunDenseFfn(StepContext& step, const LoadedDenseFfn& weights) {
  ActivationBuffers& buffers = step.buffers;
  const int64_t hidden = step.sizes.hidden;
  const int64_t width = step.sizes.intermediate;
  NormRows(step, weights.norm, buffers.hidden, hidden, buffers.normed);
  const Product in[] = {
      {&weights.gate.weight, weights.gate.bias, buffers.gate, width},
      {&weights.up.weight, weights.up.bias, buffers.up, width}};
  const LoadedMatrix* const after[] = {&weights.down.weight};
  Multiply(step, {buffers.normed, hidden, nullptr, step.num_rows()}, in,
           step.compute, after);
  const kernels::SwigluArgs swiglu = {.gate = buffers.gate,
                                      .gate_stride = width,
                                      .up = buffers.up,
                                      .up_stride = width,
                                      .n = weights.down.weight.cols,
                                      .y = buffers.gate,
                                      .y_stride = width};
  ForRanges(step, step.num_rows(), 2, [&](int64_t begin, int64_t end, int) {
    step.kernels->swiglu(swiglu, begin, end);
  });
  const Product out[] = {
      {&weights.down.weight, weights.down.bias, buffers.normed, hidden}};
  Multiply(step, {buffers.gate, width, nullptr, step.num_rows()}, out,
           step.compute, step.next_weights);
  AddRows(step, buffers.normed);
}

}  // namespace millrace::worker
