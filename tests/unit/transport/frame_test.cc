// The frame codec: what is encoded comes back equal, the layout is the written
// one, and every field out of range is refused by name. Failures are provoked
// by changing one field of a good frame, by cutting it and by flipping bits.
#include "transport/frame.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/byte_order.h"
#include "transport/frame_layout.h"
#include "transport/heap_frame_buffer.h"

namespace millrace::transport {
namespace {

using ::testing::HasSubstr;

constexpr FrameLimits kLimits = {.slots = 4,
                                 .rows_max = 8,
                                 .columns = 6,
                                 .positions_max = 100,
                                 .vocab_size = 50,
                                 .ops_max = 3};

// Activation memory behind the tensors of test frames.
const float kHidden[8 * 6] = {1.5F, -2.25F, 3, 4, 5, 6, 7};

Frame GoodFrame() {
  Frame frame;
  frame.epoch = 0x1122334455667788;
  frame.microbatch = 0x99AABBCCDDEEFF00;
  frame.segment = 3;
  OpenSequence open;
  open.slot = 2;
  open.prompt_tokens = 10;
  open.tokens_max = 20;
  open.top_logprobs = 5;
  open.sampling.temperature = 0.75F;
  open.sampling.top_k = 40;
  open.sampling.top_p = 0.9F;
  open.sampling.min_p = 0.05F;
  open.sampling.presence_penalty = -1;
  open.sampling.frequency_penalty = 0.5F;
  open.sampling.repetition_penalty = 1.1F;
  open.sampling.seed = 0xFEDCBA9876543210;
  open.sampling.choice = 7;
  open.sampling.logit_bias = {{3, -100}, {49, 2.5F}};
  frame.ops = {CloseSequence{1}, open};
  frame.rows = {{2, 0, 5, 6, kRowWantsScore}, {3, 99, 49, -3, kRowDecode}};
  frame.tensors = {{TensorKind::kHidden, TensorType::kF32, 2, 6,
                    reinterpret_cast<const std::byte*>(kHidden)}};
  frame.results = {{2, 0, -1, -0.5F, 0xDEADBEEF, RowFailure::kNone, {}},
                   {3, 99, 7, -1.5F, 0, RowFailure::kKvOverflow, {{1, -2}}}};
  return frame;
}

class Encoded {
 public:
  explicit Encoded(const Frame& frame, bool checksum = false)
      : buffer_(MakeHeapFrameBuffer(kLimits.FrameBytesMax() + 64)),
        size_(EncodeFrame(frame, checksum, buffer_->bytes())) {}

  std::byte* data() { return buffer_->bytes().data(); }
  int64_t size() const { return size_; }
  void set_size(int64_t size) { size_ = size; }

  // Makes the header consistent with changed bytes again.
  void Seal() {
    StoreLe<uint64_t>(data() + HeaderLayout::kBodyBytes,
                      static_cast<uint64_t>(size_) - HeaderLayout::kBytes);
    StoreLe<uint32_t>(data() + HeaderLayout::kHeaderCrc,
                      Crc32c(0, data(), HeaderLayout::kHeaderCrc));
  }
  absl::Status Decode(Frame& frame) {
    return DecodeFrame(buffer_->bytes().subspan(0, size_), kLimits, frame);
  }
  std::string Error() {
    Frame frame;
    const absl::Status status = Decode(frame);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }

 private:
  std::unique_ptr<FrameBuffer> buffer_;
  int64_t size_;
};

void ExpectSame(const Frame& a, const Frame& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.microbatch, b.microbatch);
  EXPECT_EQ(a.segment, b.segment);
  // Encoding is a function of the frame alone, and keeps every field apart.
  Encoded left(a);
  Encoded right(b);
  ASSERT_EQ(left.size(), right.size());
  EXPECT_EQ(0, std::memcmp(left.data(), right.data(), left.size()));
}

TEST(Frame, ComesBackEqualWithAndWithoutChecksum) {
  for (const bool checksum : {false, true}) {
    const Frame frame = GoodFrame();
    Encoded encoded(frame, checksum);
    Frame back;
    ASSERT_EQ(encoded.Decode(back), absl::OkStatus());
    ExpectSame(frame, back);
    const auto& open = std::get<OpenSequence>(back.ops[1]);
    EXPECT_EQ(open.prompt_tokens, 10);
    EXPECT_EQ(open.sampling.seed, 0xFEDCBA9876543210);
    EXPECT_EQ(open.sampling.logit_bias[1].token, 49);
    EXPECT_EQ(back.rows[1].target, -3);
    EXPECT_EQ(back.results[0].token, -1);
    EXPECT_EQ(back.results[1].failure, RowFailure::kKvOverflow);
    EXPECT_EQ(back.results[1].top[0].logprob, -2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.tensors[0].data) % 64, 0);
    EXPECT_EQ(0, std::memcmp(back.tensors[0].data, kHidden, 48));
  }
}

TEST(Frame, EmptyFrameIsAHeader) {
  Encoded encoded{Frame{}};
  EXPECT_EQ(encoded.size(), 64);
  EXPECT_EQ(encoded.Error(), "");
}

TEST(Frame, LayoutIsTheWrittenOne) {
  Encoded encoded(GoodFrame());
  const std::byte* at = encoded.data();
  EXPECT_EQ(0, std::memcmp(at, "MRRF\x01\x00\x00\x00", 8));
  EXPECT_EQ(LoadLe<uint64_t>(at + 8), 0x1122334455667788);
  EXPECT_EQ(at[8], std::byte{0x88});
  EXPECT_EQ(LoadLe<uint32_t>(at + 24), 3);
  EXPECT_EQ(LoadLe<uint32_t>(at + 28), 2);      // operations
  EXPECT_EQ(LoadLe<uint32_t>(at + 32), 2);      // rows
  EXPECT_EQ(LoadLe<uint32_t>(at + 36), 2);      // results
  EXPECT_EQ(LoadLe<uint32_t>(at + 40), 1);      // tensors
  EXPECT_EQ(LoadLe<uint32_t>(at + 64 + 4), 1);  // close: slot
  EXPECT_EQ(LoadLe<uint32_t>(at + 72 + 4), 2);  // open: slot
  EXPECT_EQ(LoadFloat(at + 72 + 16), 0.75F);
  EXPECT_EQ(LoadLe<uint32_t>(at + 72 + 56), 3);  // first bias
  const int64_t rows = 72 + 56 + 16;
  EXPECT_EQ(LoadLe<uint32_t>(at + rows + 8), 5);
  const int64_t results = rows + 40;
  EXPECT_EQ(LoadLe<uint32_t>(at + results + 16), 0xDEADBEEF);
  const int64_t tensors = results + 24 + 24 + 8;
  EXPECT_EQ(LoadLe<uint32_t>(at + tensors + 4), 2);
  EXPECT_EQ(encoded.size(), AlignTensor(tensors + 16) + 48);
}

// One change to a good frame, and what the error must say.
struct Damage {
  const char* error;
  std::function<void(Frame&)> change;
};

TEST(Frame, RefusesEveryFieldOutOfRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto open = [](Frame& f) -> OpenSequence& {
    return std::get<OpenSequence>(f.ops[1]);
  };
  const auto sampling = [open](Frame& f) -> SamplingOptions& {
    return open(f).sampling;
  };
  const Damage damages[] = {
      {"4 operations", [](Frame& f) { f.ops.resize(4); }},
      {"close: slot 4 of 4", [](Frame& f) { f.ops[0] = CloseSequence{4}; }},
      {"open: slot 9", [&](Frame& f) { open(f).slot = 9; }},
      {"open: prompt of 0", [&](Frame& f) { open(f).prompt_tokens = 0; }},
      {"open: prompt of 21", [&](Frame& f) { open(f).prompt_tokens = 21; }},
      {"in 101 positions", [&](Frame& f) { open(f).tokens_max = 101; }},
      {"21 top", [&](Frame& f) { open(f).top_logprobs = 21; }},
      {"temperature", [&](Frame& f) { sampling(f).temperature = -1; }},
      {"temperature", [&](Frame& f) { sampling(f).temperature = inf; }},
      {"temperature", [&](Frame& f) { sampling(f).temperature = nan; }},
      {"top-k", [&](Frame& f) { sampling(f).top_k = -1; }},
      {"top-p", [&](Frame& f) { sampling(f).top_p = 1.5F; }},
      {"min-p", [&](Frame& f) { sampling(f).min_p = nan; }},
      {"penalty", [&](Frame& f) { sampling(f).presence_penalty = nan; }},
      {"penalty", [&](Frame& f) { sampling(f).frequency_penalty = inf; }},
      {"penalty", [&](Frame& f) { sampling(f).repetition_penalty = 0; }},
      {"bias: token 50",
       [&](Frame& f) { sampling(f).logit_bias[0].token = 50; }},
      {"bias: token -1",
       [&](Frame& f) { sampling(f).logit_bias[0].token = -1; }},
      {"not finite", [&](Frame& f) { sampling(f).logit_bias[0].bias = inf; }},
      {"1025 logit", [&](Frame& f) { sampling(f).logit_bias.resize(1025); }},
      {"row: slot 4", [](Frame& f) { f.rows[0].slot = 4; }},
      {"row: position 100", [](Frame& f) { f.rows[0].position = 100; }},
      {"row: token 50", [](Frame& f) { f.rows[0].token = 50; }},
      {"row: token -1", [](Frame& f) { f.rows[0].token = -1; }},
      {"target: token 50", [](Frame& f) { f.rows[0].target = 50; }},
      {"unknown flags 64", [](Frame& f) { f.rows[0].flags = 64; }},
      {"unknown failure 0",
       [](Frame& f) {
         f.rows[0] = {0, 0, 0, 0, kRowFailed};
       }},
      {"unknown failure 3",
       [](Frame& f) {
         f.rows[0] = {0, 0, 0, 3, kRowFailed};
       }},
      {"9 results", [](Frame& f) { f.results.resize(9); }},
      {"result: slot 4", [](Frame& f) { f.results[0].slot = 4; }},
      {"result: position", [](Frame& f) { f.results[0].position = 100; }},
      {"result: token -2", [](Frame& f) { f.results[0].token = -2; }},
      {"result: token 50", [](Frame& f) { f.results[0].token = 50; }},
      {"result: the log", [&](Frame& f) { f.results[0].logprob = nan; }},
      {"result: unknown failure 9",
       [](Frame& f) { f.results[0].failure = static_cast<RowFailure>(9); }},
      {"result: 21 top", [](Frame& f) { f.results[0].top.resize(21); }},
      {"top log-probability: token 50",
       [](Frame& f) { f.results[1].top[0].token = 50; }},
      {"2 tensors", [](Frame& f) { f.tensors.push_back(f.tensors[0]); }},
      {"tensor [1, 6]", [](Frame& f) { f.tensors[0].rows = 1; }},
      {"tensor [2, 5]", [](Frame& f) { f.tensors[0].columns = 5; }},
      {"unknown kind",
       [](Frame& f) { f.tensors[0].kind = static_cast<TensorKind>(2); }},
      {"unknown kind or type",
       [](Frame& f) { f.tensors[0].type = static_cast<TensorType>(0); }},
  };
  for (const Damage& damage : damages) {
    Frame frame = GoodFrame();
    damage.change(frame);
    Encoded encoded(frame);
    EXPECT_THAT(encoded.Error(), HasSubstr(damage.error));
  }
}

TEST(Frame, RefusesTooManyRows) {
  Frame frame;
  frame.rows.resize(9);
  EXPECT_THAT(Encoded(frame).Error(), HasSubstr("9 rows"));
}

TEST(Frame, RefusesDamagedHeaders) {
  using L = HeaderLayout;
  Encoded magic(GoodFrame());
  magic.data()[0] = std::byte{'X'};
  EXPECT_THAT(magic.Error(), HasSubstr("magic"));
  Encoded version(GoodFrame());
  StoreLe<uint16_t>(version.data() + L::kVersion, 2);
  EXPECT_THAT(version.Error(), HasSubstr("header checksum"));
  version.Seal();
  EXPECT_THAT(version.Error(), HasSubstr("wire version 2"));
  Encoded flags(GoodFrame());
  StoreLe<uint16_t>(flags.data() + L::kFlags, 2);
  flags.Seal();
  EXPECT_THAT(flags.Error(), HasSubstr("unknown flags"));
  Encoded body(GoodFrame(), true);
  body.data()[body.size() - 1] ^= std::byte{1};
  EXPECT_THAT(body.Error(), HasSubstr("body checksum"));
}

TEST(Frame, RefusesTrailingBytesAndPadding) {
  Encoded trailing(GoodFrame());
  trailing.set_size(trailing.size() + 4);
  EXPECT_THAT(trailing.Error(), HasSubstr("header says"));
  trailing.Seal();
  EXPECT_THAT(trailing.Error(), HasSubstr("bytes follow"));
  Frame few = GoodFrame();
  few.results.clear();
  Encoded padding(few);
  padding.data()[padding.size() - 49] = std::byte{1};
  EXPECT_THAT(padding.Error(), HasSubstr("padding"));
}

TEST(Frame, EveryCutIsRefused) {
  const int64_t whole = Encoded(GoodFrame()).size();
  for (int64_t size = 0; size < whole; ++size) {
    Encoded cut(GoodFrame());
    cut.set_size(size);
    if (size >= 64) {
      cut.Seal();
    }
    EXPECT_NE(cut.Error(), "") << size;
  }
}

TEST(Frame, EveryFlippedBitIsFoundUnderTheChecksum) {
  const int64_t whole = Encoded(GoodFrame(), true).size();
  for (int64_t bit = 0; bit < whole * 8; ++bit) {
    Encoded flipped(GoodFrame(), true);
    flipped.data()[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_NE(flipped.Error(), "") << bit;
  }
}

TEST(Frame, LargestFrameFitsTheLimit) {
  Frame frame;
  OpenSequence open;
  open.prompt_tokens = 1;
  open.tokens_max = 1;
  open.sampling.logit_bias.resize(kLogitBiasMax);
  frame.ops.assign(kLimits.ops_max, open);
  frame.rows.resize(kLimits.rows_max);
  Result result;
  result.top.resize(kTopLogprobsMax);
  frame.results.assign(kLimits.rows_max, result);
  frame.tensors = {{TensorKind::kHidden, TensorType::kF32, kLimits.rows_max,
                    kLimits.columns,
                    reinterpret_cast<const std::byte*>(kHidden)}};
  Encoded encoded(frame);
  EXPECT_LE(encoded.size(), kLimits.FrameBytesMax());
  EXPECT_EQ(encoded.Error(), "");
}

// Without checksums, random damage is either refused or still in range.
TEST(Frame, RandomDamageNeverLeavesTheLimits) {
  constexpr uint32_t kSeed = 20240607;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int i = 0; i < 20000; ++i) {
    Encoded encoded(GoodFrame());
    for (int j = 0; j < 3; ++j) {
      encoded.data()[8 + random() % (encoded.size() - 8)] =
          static_cast<std::byte>(random());
    }
    encoded.Seal();
    Frame frame;
    if (encoded.Decode(frame).ok()) {
      for (const Row& row : frame.rows) {
        ASSERT_LT(row.slot, kLimits.slots);
        ASSERT_LT(row.token, 50);
      }
      ASSERT_LE(frame.ops.size(), kLimits.ops_max);
    }
  }
}

TEST(Frame, ClearKeepsEpochAndCapacity) {
  Frame frame = GoodFrame();
  const Row* rows = frame.rows.data();
  frame.Clear();
  EXPECT_EQ(frame.epoch, 0x1122334455667788);
  EXPECT_TRUE(frame.ops.empty() && frame.results.empty());
  frame.rows.resize(2);
  EXPECT_EQ(frame.rows.data(), rows);
}

}  // namespace
}  // namespace millrace::transport
