#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/matmul.h"

// The loops around the vector versions of packing; see tile_walk.h for the
// unnamed namespace.
namespace millrace::kernels {
namespace {

// Group::Pack(x) packs 32 floats.
template <typename Group>
void PackToken(const float* x, int64_t cols, int64_t step, std::byte* to) {
  int64_t k = 0;
  for (; k + kGroup <= cols; k += kGroup) {
    const ActivationRecord record = Group::Pack(x + k);
    std::memcpy(to, &record, sizeof(record));
    to += step;
  }
  if (k < cols) {
    float rest[kGroup] = {};
    for (int64_t i = k; i < cols; ++i) {
      rest[i - k] = x[i];
    }
    const ActivationRecord record = Group::Pack(rest);
    std::memcpy(to, &record, sizeof(record));
  }
}

template <typename Group>
void PackInt8Panels(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  constexpr int64_t kBytes = sizeof(ActivationRecord);
  const int64_t groups = (args.cols + kGroup - 1) / kGroup;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    std::byte* to = args.packed + begin * groups * kBytes;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t token = begin + t;
      const int64_t row =
          args.row_index == nullptr ? token : args.row_index[token];
      PackToken<Group>(args.x + row * args.x_stride, args.cols, tokens * kBytes,
                       to + t * kBytes);
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
