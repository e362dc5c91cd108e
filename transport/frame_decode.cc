#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/byte_order.h"
#include "transport/frame.h"
#include "transport/frame_layout.h"

namespace millrace::transport {
namespace {

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return MakeError(absl::StatusCode::kDataLoss, "frame",
                   absl::StrCat(parts...));
}

// What the header promises about the body.
struct Counts {
  uint32_t ops = 0;
  uint32_t rows = 0;
  uint32_t results = 0;
  uint32_t tensors = 0;
};

// Reads records from the front of the body; nothing is read past its end.
class Cursor {
 public:
  explicit Cursor(absl::Span<const std::byte> bytes, int64_t offset)
      : bytes_(bytes), offset_(offset) {}

  // The next `size` bytes, null when there are fewer.
  [[nodiscard]] const std::byte* Take(int64_t size) {
    if (size > static_cast<int64_t>(bytes_.size()) - offset_) {
      return nullptr;
    }
    const std::byte* at = bytes_.data() + offset_;
    offset_ += size;
    return at;
  }
  [[nodiscard]] int64_t offset() const { return offset_; }
  [[nodiscard]] bool AtEnd() const {
    return offset_ == static_cast<int64_t>(bytes_.size());
  }

 private:
  const absl::Span<const std::byte> bytes_;
  int64_t offset_;
};

class Decoder {
 public:
  Decoder(absl::Span<const std::byte> bytes, const FrameLimits& limits,
          Frame& frame)
      : bytes_(bytes),
        limits_(limits),
        frame_(frame),
        cursor_(bytes, HeaderLayout::kBytes) {}

  absl::Status Run() {
    MILLRACE_RETURN_IF_ERROR(Header());
    frame_.ops.resize(counts_.ops);
    for (SequenceOp& op : frame_.ops) {
      MILLRACE_RETURN_IF_ERROR(Op(op));
    }
    frame_.rows.resize(counts_.rows);
    for (Row& row : frame_.rows) {
      MILLRACE_RETURN_IF_ERROR(OneRow(row));
    }
    frame_.results.resize(counts_.results);
    for (Result& result : frame_.results) {
      MILLRACE_RETURN_IF_ERROR(OneResult(result));
    }
    frame_.tensors.resize(counts_.tensors);
    for (TensorView& tensor : frame_.tensors) {
      MILLRACE_RETURN_IF_ERROR(TensorHead(tensor));
    }
    for (TensorView& tensor : frame_.tensors) {
      MILLRACE_RETURN_IF_ERROR(TensorData(tensor));
    }
    if (!cursor_.AtEnd()) {
      return Bad("bytes follow its last record");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Header();
  absl::Status HeaderCounts(const std::byte* at);
  absl::Status Op(SequenceOp& op);
  absl::Status Open(const std::byte* head, SequenceOp& op);
  absl::Status Sampling(const std::byte* at, int64_t num_bias,
                        SamplingOptions& sampling);
  absl::Status OneRow(Row& row);
  absl::Status OneResult(Result& result);
  absl::Status TensorHead(TensorView& tensor);
  absl::Status TensorData(TensorView& tensor);
  // A token id and a number.
  absl::Status Pair(const char* what, int32_t& token, float& value);

  [[nodiscard]] absl::Status Slot(const char* what, uint32_t slot) const {
    return slot < limits_.slots
               ? absl::OkStatus()
               : Bad(what, ": slot ", slot, " of ", limits_.slots);
  }
  [[nodiscard]] absl::Status Position(const char* what,
                                      uint32_t position) const {
    return position < limits_.positions_max
               ? absl::OkStatus()
               : Bad(what, ": position ", position, " of ",
                     limits_.positions_max);
  }
  [[nodiscard]] absl::Status Token(const char* what, int32_t token) const {
    return token >= 0 && static_cast<uint32_t>(token) < limits_.vocab_size
               ? absl::OkStatus()
               : Bad(what, ": token ", token, " of ", limits_.vocab_size);
  }

  const absl::Span<const std::byte> bytes_;
  const FrameLimits& limits_;
  Frame& frame_;
  Counts counts_;
  Cursor cursor_;
};

absl::Status Decoder::Header() {
  using L = HeaderLayout;
  if (bytes_.size() < L::kBytes) {
    return Bad(bytes_.size(), " bytes are less than a header");
  }
  const std::byte* at = bytes_.data();
  if (LoadLe<uint32_t>(at + L::kMagic) != kFrameMagic) {
    return Bad("does not begin with the magic number");
  }
  if (LoadLe<uint32_t>(at + L::kHeaderCrc) != Crc32c(0, at, L::kHeaderCrc)) {
    return Bad("header checksum does not match");
  }
  const uint16_t version = LoadLe<uint16_t>(at + L::kVersion);
  if (version != kFrameWireVersion) {
    return Bad("wire version ", version, ", this program speaks ",
               kFrameWireVersion);
  }
  const uint16_t flags = LoadLe<uint16_t>(at + L::kFlags);
  if ((flags & ~kFrameFlagBodyCrc) != 0 ||
      LoadLe<uint32_t>(at + L::kReserved) != 0) {
    return Bad("unknown flags ", flags);
  }
  const size_t body_bytes = bytes_.size() - L::kBytes;
  if (LoadLe<uint64_t>(at + L::kBodyBytes) != body_bytes) {
    return Bad("body of ", body_bytes, " bytes, header says ",
               LoadLe<uint64_t>(at + L::kBodyBytes));
  }
  const bool checksum = (flags & kFrameFlagBodyCrc) != 0;
  const uint32_t crc = checksum ? Crc32c(0, at + L::kBytes, body_bytes) : 0;
  if (LoadLe<uint32_t>(at + L::kBodyCrc) != crc) {
    return Bad("body checksum does not match");
  }
  frame_.epoch = LoadLe<uint64_t>(at + L::kEpoch);
  frame_.microbatch = LoadLe<uint64_t>(at + L::kMicrobatch);
  frame_.segment = LoadLe<uint32_t>(at + L::kSegment);
  return HeaderCounts(at);
}

absl::Status Decoder::HeaderCounts(const std::byte* at) {
  using L = HeaderLayout;
  counts_.ops = LoadLe<uint32_t>(at + L::kNumOps);
  counts_.rows = LoadLe<uint32_t>(at + L::kNumRows);
  counts_.results = LoadLe<uint32_t>(at + L::kNumResults);
  counts_.tensors = LoadLe<uint32_t>(at + L::kNumTensors);
  if (counts_.ops > limits_.ops_max) {
    return Bad(counts_.ops, " operations, at most ", limits_.ops_max);
  }
  if (counts_.rows > limits_.rows_max) {
    return Bad(counts_.rows, " rows, at most ", limits_.rows_max);
  }
  if (counts_.results > limits_.rows_max) {
    return Bad(counts_.results, " results, at most ", limits_.rows_max);
  }
  // One kind of tensor exists, and each may come once.
  const uint32_t tensors_max = limits_.columns > 0 ? 1 : 0;
  if (counts_.tensors > tensors_max) {
    return Bad(counts_.tensors, " tensors, at most ", tensors_max);
  }
  return absl::OkStatus();
}

absl::Status Decoder::Op(SequenceOp& op) {
  const std::byte* head = cursor_.Take(CloseLayout::kBytes);
  if (head == nullptr) {
    return Bad("ends within an operation");
  }
  const uint8_t kind = static_cast<uint8_t>(head[0]);
  if (kind == OpenLayout::kKind) {
    return Open(head, op);
  }
  if (kind != CloseLayout::kKind || LoadLe<uint32_t>(head) != kind) {
    return Bad("unknown operation ", kind);
  }
  CloseSequence close;
  close.slot = LoadLe<uint32_t>(head + CloseLayout::kSlot);
  op = close;
  return Slot("close", close.slot);
}

absl::Status Decoder::Open(const std::byte* head, SequenceOp& op) {
  using L = OpenLayout;
  static_assert(L::kSlot == CloseLayout::kSlot);
  if (cursor_.Take(L::kBytes - CloseLayout::kBytes) == nullptr) {
    return Bad("ends within an open operation");
  }
  auto* open = std::get_if<OpenSequence>(&op);
  if (open == nullptr) {
    open = &op.emplace<OpenSequence>();
  }
  open->slot = LoadLe<uint32_t>(head + L::kSlot);
  open->prompt_tokens = LoadLe<uint32_t>(head + L::kPromptTokens);
  open->tokens_max = LoadLe<uint32_t>(head + L::kTokensMax);
  open->top_logprobs = static_cast<uint8_t>(head[L::kTopLogprobs]);
  MILLRACE_RETURN_IF_ERROR(Slot("open", open->slot));
  if (open->prompt_tokens == 0 || open->prompt_tokens > open->tokens_max ||
      open->tokens_max > limits_.positions_max) {
    return Bad("open: prompt of ", open->prompt_tokens, " in ",
               open->tokens_max, " positions, at most ", limits_.positions_max);
  }
  if (open->top_logprobs > kTopLogprobsMax) {
    return Bad("open: ", open->top_logprobs, " top log-probabilities");
  }
  return Sampling(head, LoadLe<uint16_t>(head + L::kNumBias), open->sampling);
}

absl::Status Decoder::Sampling(const std::byte* at, int64_t num_bias,
                               SamplingOptions& sampling) {
  using L = OpenLayout;
  sampling.temperature = LoadFloat(at + L::kTemperature);
  sampling.top_k = static_cast<int32_t>(LoadLe<uint32_t>(at + L::kTopK));
  sampling.top_p = LoadFloat(at + L::kTopP);
  sampling.min_p = LoadFloat(at + L::kMinP);
  sampling.presence_penalty = LoadFloat(at + L::kPresencePenalty);
  sampling.frequency_penalty = LoadFloat(at + L::kFrequencyPenalty);
  sampling.repetition_penalty = LoadFloat(at + L::kRepetitionPenalty);
  sampling.choice = LoadLe<uint32_t>(at + L::kChoice);
  sampling.seed = LoadLe<uint64_t>(at + L::kSeed);
  // Comparisons are written so that NaN fails them.
  const auto share = [](float value) { return value >= 0 && value <= 1; };
  if (!(std::isfinite(sampling.temperature) && sampling.temperature >= 0 &&
        sampling.top_k >= 0 && share(sampling.top_p) &&
        share(sampling.min_p))) {
    return Bad("open: temperature, top-k, top-p or min-p out of range");
  }
  if (!(std::isfinite(sampling.presence_penalty) &&
        std::isfinite(sampling.frequency_penalty) &&
        std::isfinite(sampling.repetition_penalty) &&
        sampling.repetition_penalty > 0)) {
    return Bad("open: a penalty is out of range");
  }
  if (num_bias > kLogitBiasMax) {
    return Bad("open: ", num_bias, " logit biases, at most ", kLogitBiasMax);
  }
  sampling.logit_bias.resize(static_cast<size_t>(num_bias));
  for (LogitBias& bias : sampling.logit_bias) {
    MILLRACE_RETURN_IF_ERROR(Pair("logit bias", bias.token, bias.bias));
    if (std::isinf(bias.bias)) {
      return Bad("logit bias: the value is not finite");
    }
  }
  return absl::OkStatus();
}

absl::Status Decoder::Pair(const char* what, int32_t& token, float& value) {
  const std::byte* at = cursor_.Take(kPairBytes);
  if (at == nullptr) {
    return Bad("ends within a ", what);
  }
  token = static_cast<int32_t>(LoadLe<uint32_t>(at));
  value = LoadFloat(at + 4);
  if (std::isnan(value)) {
    return Bad(what, ": the value is not a number");
  }
  return Token(what, token);
}

absl::Status Decoder::OneRow(Row& row) {
  using L = RowLayout;
  const std::byte* at = cursor_.Take(L::kBytes);
  if (at == nullptr) {
    return Bad("ends within its rows");
  }
  row.slot = LoadLe<uint32_t>(at + L::kSlot);
  row.position = LoadLe<uint32_t>(at + L::kPosition);
  row.token = static_cast<int32_t>(LoadLe<uint32_t>(at + L::kToken));
  row.target = static_cast<int32_t>(LoadLe<uint32_t>(at + L::kTarget));
  const uint32_t flags = LoadLe<uint32_t>(at + L::kFlags);
  constexpr uint32_t kAllFlags = kRowDecode | kRowWantsToken |
                                 kRowWantsLogprob | kRowWantsCrc |
                                 kRowWantsScore | kRowFailed;
  if ((flags & ~kAllFlags) != 0) {
    return Bad("row: unknown flags ", flags);
  }
  row.flags = static_cast<uint8_t>(flags);
  MILLRACE_RETURN_IF_ERROR(Slot("row", row.slot));
  MILLRACE_RETURN_IF_ERROR(Position("row", row.position));
  MILLRACE_RETURN_IF_ERROR(Token("row", row.token));
  if ((flags & kRowFailed) != 0) {
    return row.target >= static_cast<int32_t>(RowFailure::kLogitsNotFinite) &&
                   row.target <= static_cast<int32_t>(RowFailure::kKvOverflow)
               ? absl::OkStatus()
               : Bad("row: unknown failure ", row.target);
  }
  if ((flags & kRowWantsScore) != 0) {
    return Token("row target", row.target);
  }
  return absl::OkStatus();
}

absl::Status Decoder::OneResult(Result& result) {
  using L = ResultLayout;
  const std::byte* at = cursor_.Take(L::kBytes);
  if (at == nullptr) {
    return Bad("ends within its results");
  }
  result.slot = LoadLe<uint32_t>(at + L::kSlot);
  result.position = LoadLe<uint32_t>(at + L::kPosition);
  result.token = static_cast<int32_t>(LoadLe<uint32_t>(at + L::kToken));
  result.logprob = LoadFloat(at + L::kLogprob);
  result.logits_crc = LoadLe<uint32_t>(at + L::kLogitsCrc);
  const uint8_t failure = static_cast<uint8_t>(at[L::kFailure]);
  const uint8_t num_top = static_cast<uint8_t>(at[L::kNumTop]);
  MILLRACE_RETURN_IF_ERROR(Slot("result", result.slot));
  MILLRACE_RETURN_IF_ERROR(Position("result", result.position));
  if (result.token != -1) {
    MILLRACE_RETURN_IF_ERROR(Token("result", result.token));
  }
  if (failure > static_cast<uint8_t>(RowFailure::kKvOverflow)) {
    return Bad("result: unknown failure ", failure);
  }
  result.failure = static_cast<RowFailure>(failure);
  if (std::isnan(result.logprob)) {
    return Bad("result: the log-probability is not a number");
  }
  if (num_top > kTopLogprobsMax || LoadLe<uint16_t>(at + L::kNumTop + 1) != 0) {
    return Bad("result: ", num_top, " top log-probabilities");
  }
  result.top.resize(num_top);
  for (TopToken& top : result.top) {
    MILLRACE_RETURN_IF_ERROR(
        Pair("top log-probability", top.token, top.logprob));
  }
  return absl::OkStatus();
}

absl::Status Decoder::TensorHead(TensorView& tensor) {
  using L = TensorLayout;
  const std::byte* at = cursor_.Take(L::kBytes);
  if (at == nullptr) {
    return Bad("ends within its tensor list");
  }
  if (at[L::kKind] != static_cast<std::byte>(TensorKind::kHidden) ||
      at[L::kType] != static_cast<std::byte>(TensorType::kF32) ||
      LoadLe<uint16_t>(at + L::kType + 1) != 0 ||
      LoadLe<uint32_t>(at + L::kColumns + 4) != 0) {
    return Bad("tensor of unknown kind or type");
  }
  tensor.kind = TensorKind::kHidden;
  tensor.type = TensorType::kF32;
  tensor.rows = LoadLe<uint32_t>(at + L::kRows);
  tensor.columns = LoadLe<uint32_t>(at + L::kColumns);
  if (tensor.rows != counts_.rows || tensor.columns != limits_.columns) {
    return Bad("tensor [", tensor.rows, ", ", tensor.columns, "], expected [",
               counts_.rows, ", ", limits_.columns, "]");
  }
  return absl::OkStatus();
}

absl::Status Decoder::TensorData(TensorView& tensor) {
  const int64_t gap = AlignTensor(cursor_.offset()) - cursor_.offset();
  const std::byte* padding = cursor_.Take(gap);
  for (int64_t i = 0; padding != nullptr && i < gap; ++i) {
    if (padding[i] != std::byte{0}) {
      return Bad("padding is not zero");
    }
  }
  tensor.data = padding == nullptr
                    ? nullptr
                    : cursor_.Take(int64_t{4} * tensor.rows * tensor.columns);
  return tensor.data == nullptr ? Bad("ends within a tensor")
                                : absl::OkStatus();
}

}  // namespace

absl::Status DecodeFrame(absl::Span<const std::byte> bytes,
                         const FrameLimits& limits, Frame& frame) {
  return Decoder(bytes, limits, frame).Run();
}

}  // namespace millrace::transport
