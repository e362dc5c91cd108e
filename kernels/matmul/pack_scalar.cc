// The definition of packed activations.

#include <cstring>

#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/int8_group.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_scalar.h"
#include "kernels/quant/half.h"

namespace millrace::kernels {
namespace {

const float* RowOf(const PackActivationsArgs& args, int64_t token) {
  const int64_t row = args.row_index == nullptr ? token : args.row_index[token];
  return args.x + row * args.x_stride;
}

ActivationRecord QuantiseGroup(const float* x, int64_t num) {
  ActivationRecord record = {};
  record.d = scalar::Int8Group(x, num, record.q);
  for (int64_t i = 0; i < num; ++i) {
    record.m -= record.q[i];
    record.m1 -= i < kGroup / 2 ? 0 : record.q[i];
  }
  record.m_float = static_cast<float>(record.m);
  return record;
}

}  // namespace

void PackInt8Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  const int64_t groups = (args.cols + kGroup - 1) / kGroup;
  constexpr int64_t kBytes = sizeof(ActivationRecord);
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    std::byte* to = args.packed + begin * groups * kBytes;
    for (int64_t t = 0; t < tokens; ++t) {
      const float* x = RowOf(args, begin + t);
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t left = args.cols - g * kGroup;
        const ActivationRecord record =
            QuantiseGroup(x + g * kGroup, left < kGroup ? left : kGroup);
        StoreBytes(record, to + (g * tokens + t) * kBytes);
      }
    }
  }
}

void PackBf16Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                    int64_t panel_end) {
  const int64_t pairs = (args.cols + 1) / 2;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    std::byte* to = args.packed + begin * pairs * 4;
    for (int64_t t = 0; t < tokens; ++t) {
      const float* x = RowOf(args, begin + t);
      for (int64_t i = 0; i < pairs; ++i) {
        const uint32_t low = FlushTinyBf16(FloatToBf16(x[2 * i]));
        const uint32_t high = 2 * i + 1 < args.cols
                                  ? FlushTinyBf16(FloatToBf16(x[2 * i + 1]))
                                  : 0;
        StoreBytes(low | high << 16, to + (i * tokens + t) * 4);
      }
    }
  }
}

void PackF32Scalar(const PackActivationsArgs& args, int64_t panel_begin,
                   int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t begin = PanelBegin(args.num_tokens, panel);
    const int64_t tokens = PanelBegin(args.num_tokens, panel + 1) - begin;
    std::byte* to = args.packed + begin * args.cols * 4;
    if (tokens == 1) {
      std::memcpy(to, RowOf(args, begin), static_cast<size_t>(args.cols) * 4);
      continue;
    }
    const float* rows[kMaxPanelTokens];
    for (int64_t t = 0; t < tokens; ++t) {
      rows[t] = RowOf(args, begin + t);
    }
    for (int64_t k = 0; k < args.cols; ++k) {
      for (int64_t t = 0; t < tokens; ++t) {
        StoreBytes(rows[t][k], to);
        to += 4;
      }
    }
  }
}

}  // namespace millrace::kernels
