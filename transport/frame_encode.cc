#include <cstring>
#include <variant>

#include "base/check.h"
#include "base/crc32c.h"
#include "transport/byte_order.h"
#include "transport/frame.h"
#include "transport/frame_layout.h"

namespace millrace::transport {
namespace {

int64_t TensorBytes(const TensorView& tensor) {
  return int64_t{4} * tensor.rows * tensor.columns;
}

int64_t EncodedBytes(const Frame& frame) {
  int64_t bytes = HeaderLayout::kBytes;
  for (const SequenceOp& op : frame.ops) {
    const auto* open = std::get_if<OpenSequence>(&op);
    bytes += open == nullptr
                 ? CloseLayout::kBytes
                 : OpenLayout::kBytes +
                       open->sampling.logit_bias.size() * kPairBytes;
  }
  bytes += static_cast<int64_t>(frame.rows.size() * RowLayout::kBytes);
  for (const Result& result : frame.results) {
    bytes += static_cast<int64_t>(ResultLayout::kBytes +
                                  result.top.size() * kPairBytes);
  }
  bytes += static_cast<int64_t>(frame.tensors.size() * TensorLayout::kBytes);
  for (const TensorView& tensor : frame.tensors) {
    bytes = AlignTensor(bytes) + TensorBytes(tensor);
  }
  return bytes;
}

std::byte* PutPair(std::byte* to, int32_t token, float value) {
  StoreLe<uint32_t>(to, static_cast<uint32_t>(token));
  StoreFloat(to + 4, value);
  return to + kPairBytes;
}

std::byte* PutOpen(std::byte* to, const OpenSequence& open) {
  using L = OpenLayout;
  const SamplingOptions& sampling = open.sampling;
  to[0] = std::byte{L::kKind};
  to[L::kTopLogprobs] = std::byte{open.top_logprobs};
  StoreLe<uint16_t>(to + L::kNumBias,
                    static_cast<uint16_t>(sampling.logit_bias.size()));
  StoreLe<uint32_t>(to + L::kSlot, open.slot);
  StoreLe<uint32_t>(to + L::kPromptTokens, open.prompt_tokens);
  StoreLe<uint32_t>(to + L::kTokensMax, open.tokens_max);
  StoreFloat(to + L::kTemperature, sampling.temperature);
  StoreLe<uint32_t>(to + L::kTopK, static_cast<uint32_t>(sampling.top_k));
  StoreFloat(to + L::kTopP, sampling.top_p);
  StoreFloat(to + L::kMinP, sampling.min_p);
  StoreFloat(to + L::kPresencePenalty, sampling.presence_penalty);
  StoreFloat(to + L::kFrequencyPenalty, sampling.frequency_penalty);
  StoreFloat(to + L::kRepetitionPenalty, sampling.repetition_penalty);
  StoreLe<uint32_t>(to + L::kChoice, sampling.choice);
  StoreLe<uint64_t>(to + L::kSeed, sampling.seed);
  to += L::kBytes;
  for (const LogitBias& bias : sampling.logit_bias) {
    to = PutPair(to, bias.token, bias.bias);
  }
  return to;
}

std::byte* PutClose(std::byte* to, const CloseSequence& close) {
  StoreLe<uint32_t>(to, CloseLayout::kKind);
  StoreLe<uint32_t>(to + CloseLayout::kSlot, close.slot);
  return to + CloseLayout::kBytes;
}

std::byte* PutRow(std::byte* to, const Row& row) {
  using L = RowLayout;
  StoreLe<uint32_t>(to + L::kSlot, row.slot);
  StoreLe<uint32_t>(to + L::kPosition, row.position);
  StoreLe<uint32_t>(to + L::kToken, static_cast<uint32_t>(row.token));
  StoreLe<uint32_t>(to + L::kTarget, static_cast<uint32_t>(row.target));
  StoreLe<uint32_t>(to + L::kFlags, row.flags);
  return to + L::kBytes;
}

std::byte* PutResult(std::byte* to, const Result& result) {
  using L = ResultLayout;
  StoreLe<uint32_t>(to + L::kSlot, result.slot);
  StoreLe<uint32_t>(to + L::kPosition, result.position);
  StoreLe<uint32_t>(to + L::kToken, static_cast<uint32_t>(result.token));
  StoreFloat(to + L::kLogprob, result.logprob);
  StoreLe<uint32_t>(to + L::kLogitsCrc, result.logits_crc);
  to[L::kFailure] = static_cast<std::byte>(result.failure);
  to[L::kNumTop] = static_cast<std::byte>(result.top.size());
  StoreLe<uint16_t>(to + L::kNumTop + 1, 0);
  to += L::kBytes;
  for (const TopToken& top : result.top) {
    to = PutPair(to, top.token, top.logprob);
  }
  return to;
}

std::byte* PutTensorHead(std::byte* to, const TensorView& tensor) {
  using L = TensorLayout;
  StoreLe<uint32_t>(to, 0);
  to[L::kKind] = static_cast<std::byte>(tensor.kind);
  to[L::kType] = static_cast<std::byte>(tensor.type);
  StoreLe<uint32_t>(to + L::kRows, tensor.rows);
  StoreLe<uint32_t>(to + L::kColumns, tensor.columns);
  StoreLe<uint32_t>(to + L::kColumns + 4, 0);
  return to + L::kBytes;
}

void PutHeader(std::byte* to, const Frame& frame, int64_t bytes,
               bool checksum) {
  using L = HeaderLayout;
  const int64_t body_bytes = bytes - static_cast<int64_t>(L::kBytes);
  StoreLe<uint32_t>(to + L::kMagic, kFrameMagic);
  StoreLe<uint16_t>(to + L::kVersion, kFrameWireVersion);
  StoreLe<uint16_t>(to + L::kFlags, checksum ? kFrameFlagBodyCrc : 0);
  StoreLe<uint64_t>(to + L::kEpoch, frame.epoch);
  StoreLe<uint64_t>(to + L::kMicrobatch, frame.microbatch);
  StoreLe<uint32_t>(to + L::kSegment, frame.segment);
  const auto put_count = [to](size_t offset, size_t count) {
    StoreLe<uint32_t>(to + offset, static_cast<uint32_t>(count));
  };
  put_count(L::kNumOps, frame.ops.size());
  put_count(L::kNumRows, frame.rows.size());
  put_count(L::kNumResults, frame.results.size());
  put_count(L::kNumTensors, frame.tensors.size());
  StoreLe<uint32_t>(
      to + L::kBodyCrc,
      checksum ? Crc32c(0, to + L::kBytes, static_cast<size_t>(body_bytes))
               : 0);
  StoreLe<uint64_t>(to + L::kBodyBytes, static_cast<uint64_t>(body_bytes));
  StoreLe<uint32_t>(to + L::kReserved, 0);
  StoreLe<uint32_t>(to + L::kHeaderCrc, Crc32c(0, to, L::kHeaderCrc));
}

}  // namespace

int64_t EncodeFrame(const Frame& frame, bool checksum,
                    absl::Span<std::byte> out) {
  const int64_t bytes = EncodedBytes(frame);
  MILLRACE_CHECK(bytes <= static_cast<int64_t>(out.size()));
  std::byte* to = out.data() + HeaderLayout::kBytes;
  for (const SequenceOp& op : frame.ops) {
    const auto* open = std::get_if<OpenSequence>(&op);
    to = open != nullptr ? PutOpen(to, *open)
                         : PutClose(to, std::get<CloseSequence>(op));
  }
  for (const Row& row : frame.rows) {
    to = PutRow(to, row);
  }
  for (const Result& result : frame.results) {
    to = PutResult(to, result);
  }
  for (const TensorView& tensor : frame.tensors) {
    to = PutTensorHead(to, tensor);
  }
  for (const TensorView& tensor : frame.tensors) {
    const int64_t offset = to - out.data();
    const int64_t gap = AlignTensor(offset) - offset;
    std::memset(to, 0, static_cast<size_t>(gap));
    to += gap;
    const int64_t tensor_bytes = TensorBytes(tensor);
    if (tensor_bytes > 0) {
      std::memcpy(to, tensor.data, static_cast<size_t>(tensor_bytes));
    }
    to += tensor_bytes;
  }
  MILLRACE_CHECK(to - out.data() == bytes);
  PutHeader(out.data(), frame, bytes, checksum);
  return bytes;
}

}  // namespace millrace::transport
