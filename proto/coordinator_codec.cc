#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "proto/control_codec.h"
#include "proto/field_check.h"

namespace millrace::control {
namespace {

constexpr size_t kPathMax = 4096;
constexpr size_t kLoadKeyMax = 256;
constexpr size_t kDigestMax = 128;

// Above any model and machine, below anything that overflows when multiplied.
constexpr int64_t kLayersMax = 1'000'000;
constexpr int64_t kPositionsMax = int64_t{1} << 30;
constexpr int64_t kSequencesMax = 1 << 20;
constexpr int64_t kRowsMax = 1 << 20;
constexpr int64_t kColumnsMax = 1 << 20;
constexpr int64_t kVocabMax = int64_t{1} << 30;
constexpr int64_t kThreadsMax = 4096;
constexpr int64_t kFrameBytesMax = int64_t{4} << 30;
constexpr int64_t kMillisecondsMax = 3'600'000;

v1::ComputeMode EncodeCompute(ComputeMode mode) {
  return mode == ComputeMode::kFast ? v1::COMPUTE_MODE_FAST
                                    : v1::COMPUTE_MODE_EXACT;
}

v1::KvType EncodeKv(KvType type) {
  switch (type) {
    case KvType::kF32:
      return v1::KV_TYPE_F32;
    case KvType::kF16:
      return v1::KV_TYPE_F16;
    case KvType::kBf16:
      return v1::KV_TYPE_BF16;
    case KvType::kInt8:
      return v1::KV_TYPE_INT8;
  }
  return v1::KV_TYPE_UNSPECIFIED;
}

std::string TokenText(const transport::LinkToken& token) {
  return std::string(reinterpret_cast<const char*>(token.data()), token.size());
}

uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(absl::ToInt64Milliseconds(duration));
}

void PutLimits(const transport::FrameLimits& from, v1::FrameLimits& to) {
  to.set_slots(from.slots);
  to.set_rows_max(from.rows_max);
  to.set_columns(from.columns);
  to.set_positions_max(from.positions_max);
  to.set_vocab_size(from.vocab_size);
  to.set_ops_max(from.ops_max);
}

void Put(const Welcome& from, v1::CoordinatorMessage& message) {
  v1::Welcome& to = *message.mutable_welcome();
  to.set_heartbeat_ms(Milliseconds(from.heartbeat));
  to.set_lease_ms(Milliseconds(from.lease));
}

void Put(const Load& from, v1::CoordinatorMessage& message) {
  v1::Load& to = *message.mutable_load();
  to.set_load_key(from.load_key);
  to.set_model(from.model);
  to.set_model_digest(from.model_digest);
  v1::Stage& stage = *to.mutable_stage();
  stage.set_first_layer(from.stage.first_layer);
  stage.set_last_layer(from.stage.last_layer);
  stage.set_holds_embedding(from.stage.holds_embedding);
  stage.set_holds_head(from.stage.holds_head);
  stage.set_compute(EncodeCompute(from.stage.compute));
  stage.set_kv_type(EncodeKv(from.stage.kv_type));
  stage.set_context(from.stage.context);
  stage.set_sequences(from.stage.sequences);
  stage.set_slots(from.stage.slots);
  stage.set_rows_max(from.stage.rows_max);
  stage.set_prefill_chunk(from.stage.prefill_chunk);
  stage.set_num_threads(from.stage.num_threads);
}

void Put(const Activate& from, v1::CoordinatorMessage& message) {
  v1::Activate& to = *message.mutable_activate();
  to.set_epoch(from.epoch);
  to.set_load_key(from.load_key);
  to.set_segment(from.segment);
  to.set_upstream_token(TokenText(from.upstream_token));
  to.set_downstream_address(transport::FormatEndpoint(from.downstream_address));
  to.set_downstream_token(TokenText(from.downstream_token));
  PutLimits(from.upstream_limits, *to.mutable_upstream_limits());
  PutLimits(from.downstream_limits, *to.mutable_downstream_limits());
  to.set_upstream_window(from.upstream_window);
  to.set_downstream_window(from.downstream_window);
  to.set_timeout_ms(Milliseconds(from.timeout));
}

void Put(const Deactivate& from, v1::CoordinatorMessage& message) {
  message.mutable_deactivate()->set_epoch(from.epoch);
}
void Put(const Drain&, v1::CoordinatorMessage& message) {
  message.mutable_drain();
}
void Put(const Shutdown&, v1::CoordinatorMessage& message) {
  message.mutable_shutdown();
}

transport::FrameLimits TakeLimits(FieldCheck& check,
                                  const v1::FrameLimits& from) {
  const auto field = [&check](absl::string_view name, uint32_t value,
                              int64_t low, int64_t high) {
    return static_cast<uint32_t>(check.Range(name, value, low, high));
  };
  transport::FrameLimits to;
  to.slots = field("slots", from.slots(), 1, kSequencesMax);
  to.rows_max = field("rows_max", from.rows_max(), 1, kRowsMax);
  to.columns = field("columns", from.columns(), 0, kColumnsMax);
  to.positions_max =
      field("positions_max", from.positions_max(), 1, kPositionsMax);
  to.vocab_size = field("vocab_size", from.vocab_size(), 1, kVocabMax);
  to.ops_max = field("ops_max", from.ops_max(), 1, 2 * kSequencesMax);
  check.Require("rows_max times columns", to.FrameBytesMax() <= kFrameBytesMax);
  return to;
}

Stage TakeStage(FieldCheck& check, const v1::Stage& from) {
  Stage to;
  to.last_layer = check.Range("last_layer", from.last_layer(), 0, kLayersMax);
  to.first_layer =
      check.Range("first_layer", from.first_layer(), 0, to.last_layer);
  to.holds_embedding = from.holds_embedding();
  to.holds_head = from.holds_head();
  check.Require("compute", from.compute() == v1::COMPUTE_MODE_FAST ||
                               from.compute() == v1::COMPUTE_MODE_EXACT);
  to.compute = from.compute() == v1::COMPUTE_MODE_EXACT ? ComputeMode::kExact
                                                        : ComputeMode::kFast;
  switch (from.kv_type()) {
    case v1::KV_TYPE_F32:
      to.kv_type = KvType::kF32;
      break;
    case v1::KV_TYPE_F16:
      to.kv_type = KvType::kF16;
      break;
    case v1::KV_TYPE_BF16:
      to.kv_type = KvType::kBf16;
      break;
    case v1::KV_TYPE_INT8:
      to.kv_type = KvType::kInt8;
      break;
    default:
      check.Require("kv_type", false);
  }
  to.context = check.Range("context", from.context(), 1, kPositionsMax);
  to.sequences = check.Range("sequences", from.sequences(), 1, kSequencesMax);
  to.slots = check.Range("slots", from.slots(), to.sequences, kSequencesMax);
  to.rows_max = check.Range("rows_max", from.rows_max(), 1, kRowsMax);
  to.prefill_chunk =
      check.Range("prefill_chunk", from.prefill_chunk(), 1, to.rows_max);
  to.num_threads = static_cast<int>(
      check.Range("num_threads", from.num_threads(), 0, kThreadsMax));
  return to;
}

absl::StatusOr<CoordinatorMessage> Take(const v1::Welcome& from) {
  FieldCheck check("Welcome");
  Welcome to;
  to.heartbeat = absl::Milliseconds(
      check.Range("heartbeat_ms", from.heartbeat_ms(), 1, kMillisecondsMax));
  to.lease = absl::Milliseconds(
      check.Range("lease_ms", from.lease_ms(), 1, kMillisecondsMax));
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<CoordinatorMessage> Take(const v1::Load& from) {
  FieldCheck check("Load");
  Load to;
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  to.model = check.Text("model", from.model(), kPathMax);
  to.model_digest = check.Text("model_digest", from.model_digest(), kDigestMax);
  check.Require("load_key", !from.load_key().empty());
  check.Require("model", !from.model().empty());
  to.stage = TakeStage(check, from.stage());
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<CoordinatorMessage> Take(const v1::Activate& from) {
  FieldCheck check("Activate");
  Activate to;
  to.epoch = from.epoch();
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  to.segment = static_cast<uint32_t>(
      check.Range("segment", from.segment(), 0, kLayersMax));
  to.upstream_token = check.Token("upstream_token", from.upstream_token());
  to.downstream_address =
      check.Address("downstream_address", from.downstream_address());
  to.downstream_token =
      check.Token("downstream_token", from.downstream_token());
  to.upstream_limits = TakeLimits(check, from.upstream_limits());
  to.downstream_limits = TakeLimits(check, from.downstream_limits());
  to.upstream_window = static_cast<uint32_t>(check.Range(
      "upstream_window", from.upstream_window(), 1, transport::kTcpWindowMax));
  to.downstream_window = static_cast<uint32_t>(
      check.Range("downstream_window", from.downstream_window(), 1,
                  transport::kTcpWindowMax));
  to.timeout = absl::Milliseconds(
      check.Range("timeout_ms", from.timeout_ms(), 1, kMillisecondsMax));
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

}  // namespace

v1::CoordinatorMessage Encode(const CoordinatorMessage& message) {
  v1::CoordinatorMessage out;
  std::visit([&out](const auto& body) { Put(body, out); }, message);
  return out;
}

absl::StatusOr<CoordinatorMessage> Decode(
    const v1::CoordinatorMessage& message) {
  switch (message.body_case()) {
    case v1::CoordinatorMessage::kWelcome:
      return Take(message.welcome());
    case v1::CoordinatorMessage::kLoad:
      return Take(message.load());
    case v1::CoordinatorMessage::kActivate:
      return Take(message.activate());
    case v1::CoordinatorMessage::kDeactivate:
      return Deactivate{message.deactivate().epoch()};
    case v1::CoordinatorMessage::kDrain:
      return Drain{};
    case v1::CoordinatorMessage::kShutdown:
      return Shutdown{};
    case v1::CoordinatorMessage::BODY_NOT_SET:
      break;
  }
  return MakeError(absl::StatusCode::kInvalidArgument, "control message",
                   "is of a kind that this version does not know");
}

std::string LoadKeyOf(const std::string& model_digest, const Stage& stage) {
  return absl::StrCat(
      model_digest.substr(0, 64), "/", stage.first_layer, "-", stage.last_layer,
      stage.holds_embedding ? "e" : "", stage.holds_head ? "h" : "", "/",
      static_cast<int>(stage.compute), static_cast<int>(stage.kv_type), "/c",
      stage.context, ",n", stage.sequences, ",s", stage.slots, ",r",
      stage.rows_max, ",p", stage.prefill_chunk, ",t", stage.num_threads);
}

}  // namespace millrace::control
