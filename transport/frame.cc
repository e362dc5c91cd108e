#include "transport/frame.h"

#include "transport/frame_layout.h"

namespace millrace::transport {

void Frame::Clear() {
  microbatch = 0;
  segment = 0;
  ops.clear();
  rows.clear();
  tensors.clear();
  results.clear();
}

int64_t FrameLimits::FrameBytesMax() const {
  const int64_t open_bytes = OpenLayout::kBytes + kLogitBiasMax * kPairBytes;
  const int64_t result_bytes =
      ResultLayout::kBytes + kTopLogprobsMax * kPairBytes;
  const int64_t row_bytes = static_cast<int64_t>(RowLayout::kBytes) +
                            result_bytes + int64_t{4} * columns;
  return static_cast<int64_t>(HeaderLayout::kBytes + TensorLayout::kBytes) +
         kTensorAlign + ops_max * open_bytes + rows_max * row_bytes;
}

}  // namespace millrace::transport
