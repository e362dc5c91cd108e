#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace millrace::transport {

// What crosses from one stage to the next: one micro-batch, or the results of
// one on the way back to the coordinator. Byte layout: README.md.
// Plain values; vectors keep their capacity across reuse, so that the data path
// does not allocate after warm-up.

struct LogitBias {
  int32_t token = 0;
  float bias = 0;
};

// How the last stage chooses tokens; validated by the coordinator.
struct SamplingOptions {
  float temperature = 0;  // 0: the largest logit, ties to the lower id
  int32_t top_k = 0;      // 0: off
  float top_p = 1;
  float min_p = 0;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float repetition_penalty = 1;
  uint64_t seed = 0;
  uint32_t choice = 0;
  std::vector<LogitBias> logit_bias;  // at most kLogitBiasMax
};
inline constexpr int64_t kLogitBiasMax = 1024;
inline constexpr int32_t kTopLogprobsMax = 20;

// Sequence operations apply in order, before the rows of their frame.
struct OpenSequence {
  uint32_t slot = 0;  // free on every stage
  // Length of the prompt: base of dynamic rope, border of the penalties.
  uint32_t prompt_tokens = 0;
  uint32_t tokens_max = 0;  // positions that will ever be used
  uint8_t top_logprobs =
      0;  // returned with results that want log-probabilities
  SamplingOptions sampling;
};
struct CloseSequence {
  uint32_t slot = 0;  // open
};
using SequenceOp = std::variant<OpenSequence, CloseSequence>;

enum RowFlag : uint8_t {
  kRowDecode = 1,        // one generated token; else prefill
  kRowWantsToken = 2,    // the last stage samples the token behind it
  kRowWantsLogprob = 4,  // with the sampled token's log-probability, top list
  kRowWantsCrc = 8,      // CRC-32C of its whole logits row
  kRowWantsScore = 16,   // log-probability of `target` under this row, top list
  kRowFailed = 32,       // an earlier stage failed it; `target` says why
};

// Why a row failed; travels in Row::target and Result::failure.
enum class RowFailure : uint8_t {
  kNone = 0,
  kLogitsNotFinite = 1,  // NaN, or an infinite maximum
  kKvOverflow = 2,       // a finite key or value overflowed the stored type
};

struct Row {
  uint32_t slot = 0;
  uint32_t position = 0;
  int32_t token = 0;
  int32_t target = 0;  // see the flags
  uint8_t flags = 0;
};

enum class TensorKind : uint8_t { kHidden = 1 };
enum class TensorType : uint8_t { kF32 = 1 };

// One tensor of the bundle that crosses a cut: [rows, columns], row-major.
// `data` points into the frame's buffer when decoded, to the stage's activation
// memory when encoded; 4-byte aligned.
struct TensorView {
  TensorKind kind = TensorKind::kHidden;
  TensorType type = TensorType::kF32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  const std::byte* data = nullptr;
};

struct TopToken {
  int32_t token = 0;
  float logprob = 0;
};
// In place, so that whoever makes or hands on a result allocates nothing.
using TopTokens = absl::InlinedVector<TopToken, kTopLogprobsMax>;

// What the last stage says about one row that wanted something.
struct Result {
  uint32_t slot = 0;
  uint32_t position = 0;  // of the row
  int32_t token = -1;     // sampled; -1 when none was wanted
  float logprob = 0;      // of token, or of the row's target when scored
  uint32_t logits_crc = 0;
  RowFailure failure = RowFailure::kNone;
  TopTokens top;  // by logprob, falling
};

struct Frame {
  uint64_t epoch = 0;
  uint64_t microbatch = 0;
  uint32_t segment =
      0;  // index in the route of the receiver; results: route size
  std::vector<SequenceOp> ops;
  std::vector<Row> rows;
  std::vector<TensorView> tensors;
  std::vector<Result> results;

  // Empties everything, keeps capacity and epoch.
  void Clear();
};

// Hard limits a decoder enforces, from the plan; every count in a frame is
// checked against them before use.
struct FrameLimits {
  uint32_t slots = 0;     // sequence slots
  uint32_t rows_max = 0;  // rows of one frame
  uint32_t columns = 0;   // hidden size
  uint32_t positions_max = 0;
  uint32_t vocab_size = 0;
  uint32_t ops_max = 0;

  // Largest encoded frame in bytes under these limits.
  [[nodiscard]] int64_t FrameBytesMax() const;
};

// Encodes into `out` (sized FrameBytesMax()); returns the bytes used.
// `checksum`: with a CRC-32C of the body (TCP); in process it is left out.
int64_t EncodeFrame(const Frame& frame, bool checksum,
                    absl::Span<std::byte> out);

// Decodes and validates; tensors point into `bytes`, which must be 8-byte
// aligned and outlive their use. kDataLoss names what is wrong; `frame` is then
// unspecified.
absl::Status DecodeFrame(absl::Span<const std::byte> bytes,
                         const FrameLimits& limits, Frame& frame);

}  // namespace millrace::transport
