// Every version of attention and of the store of keys and values equals the
// scalar one bit for bit, over head sizes, ratios of heads, windows, rings of
// blocks, mixes of sequences and cuts of the work; places out of sight hold
// random bytes.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/attention_layout.h"
#include "kernels/vector/half.h"
#include "tests/property/ops/versions.h"

namespace millrace::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16,
                             KvType::kInt8};

int64_t TileBytesInt8(int64_t dims) {
  return 16 * dims + 64 * KvScaleGroups(dims);
}

// Where the scales of an int8 block lie: eight runs of one size in each head.
std::vector<std::pair<int64_t, int64_t>> ScaleRuns(int64_t heads,
                                                   int64_t dims) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  const int64_t tile = TileBytesInt8(dims);
  const int64_t scales = 64 * KvScaleGroups(dims);
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t begin = head * 8 * tile;
    for (int64_t t = 0; t < 4; ++t) {
      runs.emplace_back(begin + t * tile + 16 * dims, scales);
    }
    runs.emplace_back(begin + 4 * tile + 64 * dims, 4 * scales);
  }
  return runs;
}

// Scales, then codes.
std::vector<float> DecodeInt8(int64_t heads, int64_t dims,
                              const std::vector<std::byte>& block) {
  std::vector<float> values;
  std::vector<bool> is_scale(block.size(), false);
  for (const auto& [begin, bytes] : ScaleRuns(heads, dims)) {
    for (int64_t at = begin; at < begin + bytes; at += 4) {
      float scale;
      std::memcpy(&scale, block.data() + at, sizeof(scale));
      values.push_back(scale);
      std::fill_n(is_scale.begin() + at, 4, true);
    }
  }
  for (size_t at = 0; at < block.size(); ++at) {
    if (!is_scale[at]) {
      values.push_back(static_cast<float>(static_cast<int8_t>(block[at])));
    }
  }
  return values;
}

// The elements of a block as floats, so that a NaN equals a NaN.
std::vector<float> Decode(KvType type, int64_t heads, int64_t dims,
                          const std::vector<std::byte>& block) {
  if (type == KvType::kInt8) {
    return DecodeInt8(heads, dims, block);
  }
  std::vector<float> values;
  const size_t step = type == KvType::kF32 ? 4 : 2;
  for (size_t at = 0; at < block.size(); at += step) {
    if (type == KvType::kF32) {
      float value;
      std::memcpy(&value, block.data() + at, sizeof(value));
      values.push_back(value);
    } else {
      uint16_t half;
      std::memcpy(&half, block.data() + at, sizeof(half));
      values.push_back(type == KvType::kF16 ? scalar::F32FromF16(half)
                                            : scalar::F32FromBf16(half));
    }
  }
  return values;
}

TEST(AttentionProperty, KvStore) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(1);
  for (const KvType type : kTypes) {
    for (const int64_t dims : {1, 16, 24, 32, 33, 40, 64, 80, 96, 128}) {
      for (int round = 0; round < 30; ++round) {
        const int64_t heads = 1 + values.Below(3);
        // Near the ends of what a scale can be, too.
        const float scale = values.Pick<float>({1, 3e4f, 1e-6f, 1e-30f, 1e38f});
        const int64_t special = round < 5 ? 0 : 40;
        const std::vector<float> k =
            values.Vector(heads * dims, scale, special);
        const std::vector<float> v =
            values.Vector(heads * dims, scale, special);
        const int64_t position = values.Below(64);
        bool fits = false;
        const auto run = [&](const KernelTable& table) {
          std::vector<std::byte> block(KvBlockBytes(type, heads, dims));
          fits = table.kv_store[static_cast<int>(type)](
              {.k = k.data(),
               .v = v.data(),
               .num_kv_heads = heads,
               .head_dim = dims,
               .block = block.data(),
               .position_in_block = position});
          return Decode(type, heads, dims, block);
        };
        const std::vector<float> want = run(scalar);
        const bool want_fits = fits;
        for (const Version& version : versions) {
          ASSERT_EQ(FirstDifference(run(version.table), want), -1)
              << version.name << " type " << static_cast<int>(type) << " dims "
              << dims;
          ASSERT_EQ(fits, want_fits) << version.name;
        }
      }
    }
  }
}

// A micro-batch of several sequences over one pool.
struct Batch {
  AttentionArgs args = {};
  std::vector<std::byte> pool;
  std::vector<std::vector<int32_t>> tables;
  std::vector<AttentionRow> rows;
  std::vector<float> q;
  int64_t cut = 0;  // item at which the work is divided
  std::string text;
};

// Consecutive positions of one sequence with a window, perhaps over a ring.
void AddSequence(ValueMaker& values, int64_t sequence, int64_t num_rows,
                 int32_t& next_block, Batch& batch) {
  const int64_t start = values.Below(values.Pick<int64_t>({3, 70, 200}));
  const int64_t window = values.Pick<int64_t>({1, 5, 16, 64, 100, 100000});
  const int64_t last = start + num_rows - 1;
  const int64_t needed = last / 64 + 1;
  // A ring holds the window of every row that looks into it.
  const int64_t ring = (window + num_rows + 62) / 64 + 1;
  const int64_t num_blocks = std::min(needed, ring);
  std::vector<int32_t>& table = batch.tables[sequence];
  for (int64_t b = 0; b < num_blocks; ++b) {
    table.push_back(next_block++);
  }
  for (int64_t i = 0; i < num_rows; ++i) {
    const int64_t position = start + i;
    batch.rows.push_back(
        {.blocks = table.data(),
         .num_blocks = num_blocks,
         .first_visible = std::max<int64_t>(0, position - window + 1),
         .position = position});
  }
  batch.text += " rows " + std::to_string(start) + "+" +
                std::to_string(num_rows) + " window " + std::to_string(window);
}

// Any code, and scales as below.
void FillPoolInt8(ValueMaker& values, int64_t bytes, Batch& batch) {
  const AttentionArgs& args = batch.args;
  batch.pool.resize(bytes);
  for (std::byte& code : batch.pool) {
    code = static_cast<std::byte>(values.Below(256));
  }
  const int64_t special = values.Chance(3) ? 200 : 0;
  for (int64_t block = 0; block + args.block_bytes <= bytes;
       block += args.block_bytes) {
    for (const auto& [begin, size] :
         ScaleRuns(args.num_kv_heads, args.head_dim)) {
      const std::vector<float> scales = values.Vector(size / 4, 0.01f, special);
      std::memcpy(batch.pool.data() + block + begin, scales.data(), size);
    }
  }
}

// Numbers everywhere, and for one in three batches the odd special one.
void FillPool(ValueMaker& values, KvType type, int64_t bytes, Batch& batch) {
  if (type == KvType::kInt8) {
    FillPoolInt8(values, bytes, batch);
    return;
  }
  const int64_t special = values.Chance(3) ? 2000 : 0;
  const int64_t element = type == KvType::kF32 ? 4 : 2;
  const std::vector<float> numbers =
      values.Vector(bytes / element, 1.0f, special);
  batch.pool.resize(bytes);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t half = type == KvType::kF16
                              ? scalar::F16FromF32(numbers[i])
                              : scalar::Bf16FromF32(numbers[i]);
    if (type == KvType::kF32) {
      std::memcpy(batch.pool.data() + i * 4, &numbers[i], 4);
    } else {
      std::memcpy(batch.pool.data() + i * 2, &half, 2);
    }
  }
}

// Makes the scales of position j of a head NaN.
void PoisonInt8(std::byte* head, int64_t j, int64_t dims) {
  const int64_t groups = KvScaleGroups(dims);
  std::byte* keys = head + j / 16 * TileBytesInt8(dims) + 16 * dims;
  std::byte* values = head + 4 * TileBytesInt8(dims) + 64 * dims;
  for (int64_t g = 0; g < groups; ++g) {
    std::memset(keys + g * 64 + j % 16 * 4, 0xff, 4);
  }
  std::memset(values + j * groups * 4, 0xff, groups * 4);
}

// Overwrites with NaN all that no row of the batch sees.
void PoisonUnseen(KvType type, Batch& batch) {
  const AttentionArgs& args = batch.args;
  const int64_t element = type == KvType::kF32 ? 4 : 2;
  std::vector<bool> seen(batch.pool.size() / args.block_bytes * 64, false);
  for (const AttentionRow& row : batch.rows) {
    for (int64_t j = row.first_visible; j <= row.position; ++j) {
      seen[row.blocks[j / 64 % row.num_blocks] * 64 + j % 64] = true;
    }
  }
  for (size_t place = 0; place < seen.size(); ++place) {
    if (seen[place]) {
      continue;
    }
    const int64_t j = static_cast<int64_t>(place) % 64;
    for (int64_t h = 0; h < args.num_kv_heads; ++h) {
      std::byte* block = batch.pool.data() +
                         static_cast<int64_t>(place) / 64 * args.block_bytes;
      if (type == KvType::kInt8) {
        PoisonInt8(block + h * 8 * TileBytesInt8(args.head_dim), j,
                   args.head_dim);
        continue;
      }
      std::byte* head = block + h * 128 * args.head_dim * element;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        const int64_t k = (j / 16 * args.head_dim + d) * 16 + j % 16;
        const int64_t v = (64 + j) * args.head_dim + d;
        std::memset(head + k * element, 0xff, element);
        std::memset(head + v * element, 0xff, element);
      }
    }
  }
}

Batch MakeBatch(ValueMaker& values, KvType type) {
  Batch batch;
  AttentionArgs& args = batch.args;
  args.head_dim = values.Pick<int64_t>({16, 24, 32, 40, 64, 80, 96, 128});
  args.num_kv_heads = 1 + values.Below(3);
  const int64_t ratio =
      values.Pick<int64_t>({1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 33});
  args.num_heads = args.num_kv_heads * ratio;
  args.scale = values.Pick<float>({0.125f, 0.0884f, 1.0f});
  args.block_bytes = KvBlockBytes(type, args.num_kv_heads, args.head_dim) +
                     values.Pick<int64_t>({0, 64});
  batch.text = "dims " + std::to_string(args.head_dim) + " kv " +
               std::to_string(args.num_kv_heads) + " ratio " +
               std::to_string(ratio);
  const int64_t num_sequences = 1 + values.Below(3);
  batch.tables.resize(num_sequences);
  int32_t num_blocks = 0;
  for (int64_t s = 0; s < num_sequences; ++s) {
    const int64_t longest = ratio > 4 ? 6 : 24;
    AddSequence(values, s, values.Chance(2) ? 1 : 1 + values.Below(longest),
                num_blocks, batch);
  }
  args.num_rows = static_cast<int64_t>(batch.rows.size());
  args.q_stride = args.num_heads * args.head_dim + values.Below(3);
  args.out_stride = args.num_heads * args.head_dim + values.Below(3);
  batch.q =
      values.Vector(args.num_rows * args.q_stride,
                    values.Pick<float>({1, 1, 8}), values.Chance(4) ? 1000 : 0);
  FillPool(values, type, num_blocks * args.block_bytes, batch);
  if (values.Chance(2)) {
    PoisonUnseen(type, batch);
  }
  batch.cut = values.Below(args.num_rows * args.num_kv_heads + 1);
  args.q = batch.q.data();
  args.rows = batch.rows.data();
  args.pool = batch.pool.data();
  return batch;
}

// The pointers are set here, where the batch has come to rest.
std::vector<float> RunBatch(const Batch& batch, AttentionFn attention) {
  AttentionArgs args = batch.args;
  std::vector<float> out(args.num_rows * args.out_stride, 7.0f);
  args.out = out.data();
  const int64_t items = args.num_rows * args.num_kv_heads;
  std::vector<std::byte> scratch(
      AttentionScratchBytes(args.num_heads, args.num_kv_heads, args.head_dim));
  attention(args, 0, batch.cut, scratch.data());
  attention(args, batch.cut, items, scratch.data());
  return out;
}

TEST(AttentionProperty, Attention) {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const std::vector<Version> versions = OtherVersions();
  ValueMaker values(2);
  for (int round = 0; round < 400; ++round) {
    const KvType type = kTypes[round % 4];
    const Batch batch = MakeBatch(values, type);
    const int slot = static_cast<int>(type);
    const std::vector<float> want = RunBatch(batch, scalar.attention[slot]);
    for (const Version& version : versions) {
      const std::vector<float> got =
          RunBatch(batch, version.table.attention[slot]);
      const int64_t at = FirstDifference(got, want);
      ASSERT_EQ(at, -1) << version.name << " type " << slot << " round "
                        << round << ": " << batch.text << ": " << got[at]
                        << " for " << want[at];
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
