#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "proto/control_codec.h"
#include "proto/error_codec.h"
#include "proto/field_check.h"

namespace millrace::control {
namespace {

constexpr size_t kShortTextMax = 128;
constexpr size_t kLoadKeyMax = 256;
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

void Put(const Register& from, v1::WorkerMessage& message) {
  v1::Register& to = *message.mutable_register_();
  to.set_name(from.name);
  to.set_version(from.version);
  to.set_wire_version(from.wire_version);
  to.set_memory_bytes(static_cast<uint64_t>(from.memory_bytes));
  to.set_data_address(transport::FormatEndpoint(from.data_address));
  to.set_isa(from.isa);
  to.set_pid(from.pid);
  to.set_resident_bytes(static_cast<uint64_t>(from.resident_bytes));
  to.set_load_key(from.load_key);
  for (const KernelUse& use : from.kernels) {
    v1::KernelUse& kernel = *to.add_kernels();
    kernel.set_kernel(use.kernel);
    kernel.set_compute(use.compute);
    kernel.set_version(use.version);
  }
}

void Put(const Heartbeat& from, v1::WorkerMessage& message) {
  v1::Heartbeat& to = *message.mutable_heartbeat();
  to.set_resident_bytes(static_cast<uint64_t>(from.resident_bytes));
  v1::StageCounters& stage = *to.mutable_stage();
  stage.set_frames(from.stage.frames);
  stage.set_rows(from.stage.rows);
  stage.set_bytes_received(from.stage.bytes_received);
  stage.set_bytes_sent(from.stage.bytes_sent);
  stage.set_busy_ns(absl::ToInt64Nanoseconds(from.stage.busy));
  stage.set_wait_for_input_ns(
      absl::ToInt64Nanoseconds(from.stage.wait_for_input));
  stage.set_wait_for_credit_ns(
      absl::ToInt64Nanoseconds(from.stage.wait_for_credit));
  stage.set_sequences_open(from.stage.sequences_open);
  stage.set_kv_blocks_used(from.stage.kv_blocks_used);
  stage.set_kv_blocks_total(from.stage.kv_blocks_total);
}

void Put(const LoadProgress& from, v1::WorkerMessage& message) {
  v1::LoadProgress& to = *message.mutable_load_progress();
  to.set_load_key(from.load_key);
  to.set_bytes_done(from.bytes_done);
  to.set_bytes_total(from.bytes_total);
}

void Put(const Loaded& from, v1::WorkerMessage& message) {
  v1::Loaded& to = *message.mutable_loaded();
  to.set_load_key(from.load_key);
  to.set_weights_bytes(from.weights_bytes);
  to.set_kv_bytes(from.kv_bytes);
  to.set_scratch_bytes(from.scratch_bytes);
}

void Put(const Active& from, v1::WorkerMessage& message) {
  message.mutable_active()->set_epoch(from.epoch);
}

void Put(const Failed& from, v1::WorkerMessage& message) {
  v1::Failed& to = *message.mutable_failed();
  to.set_operation(from.operation == Operation::kLoad ? v1::OPERATION_LOAD
                                                      : v1::OPERATION_ACTIVATE);
  to.set_load_key(from.load_key);
  to.set_epoch(from.epoch);
  *to.mutable_error() = EncodeError(from.error);
}

void Put(const StageEnded& from, v1::WorkerMessage& message) {
  v1::StageEnded& to = *message.mutable_stage_ended();
  to.set_epoch(from.epoch);
  *to.mutable_error() = EncodeError(from.error);
}

// They become labels of metrics: bounded in number, none twice.
void TakeKernels(const v1::Register& from, FieldCheck& check,
                 std::vector<KernelUse>& to) {
  check.Require("kernels",
                from.kernels_size() <= static_cast<int>(kKernelUsesMax));
  if (!check.status().ok()) {
    return;
  }
  for (const v1::KernelUse& kernel : from.kernels()) {
    KernelUse use;
    use.kernel = check.Name("kernels.kernel", kernel.kernel());
    if (!kernel.compute().empty()) {
      use.compute = check.Name("kernels.compute", kernel.compute());
    }
    use.version = check.Name("kernels.version", kernel.version());
    check.Require("kernels", std::find(to.begin(), to.end(), use) == to.end());
    to.push_back(std::move(use));
  }
}

absl::StatusOr<WorkerMessage> Take(const v1::Register& from) {
  FieldCheck check("Register");
  Register to;
  to.name = check.Name("name", from.name());
  to.wire_version = from.wire_version();
  if (check.status().ok() && to.wire_version != kWireVersion) {
    return to;
  }
  to.version = check.Text("version", from.version(), kShortTextMax);
  to.memory_bytes = check.Size("memory_bytes", from.memory_bytes());
  to.data_address = check.Address("data_address", from.data_address());
  to.isa = check.Text("isa", from.isa(), kShortTextMax);
  to.pid = check.Range("pid", from.pid(), 0, kAny);
  to.resident_bytes = check.Size("resident_bytes", from.resident_bytes());
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  TakeKernels(from, check, to.kernels);
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<WorkerMessage> Take(const v1::Heartbeat& from) {
  FieldCheck check("Heartbeat");
  Heartbeat to;
  to.resident_bytes = check.Size("resident_bytes", from.resident_bytes());
  const v1::StageCounters& stage = from.stage();
  const auto count = [&check](absl::string_view field, int64_t value) {
    return check.Range(field, value, 0, kAny);
  };
  const auto time = [&count](absl::string_view field, int64_t value) {
    return absl::Nanoseconds(count(field, value));
  };
  to.stage.frames = count("frames", stage.frames());
  to.stage.rows = count("rows", stage.rows());
  to.stage.bytes_received = count("bytes_received", stage.bytes_received());
  to.stage.bytes_sent = count("bytes_sent", stage.bytes_sent());
  to.stage.busy = time("busy_ns", stage.busy_ns());
  to.stage.wait_for_input =
      time("wait_for_input_ns", stage.wait_for_input_ns());
  to.stage.wait_for_credit =
      time("wait_for_credit_ns", stage.wait_for_credit_ns());
  to.stage.sequences_open = count("sequences_open", stage.sequences_open());
  to.stage.kv_blocks_used = count("kv_blocks_used", stage.kv_blocks_used());
  to.stage.kv_blocks_total = count("kv_blocks_total", stage.kv_blocks_total());
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<WorkerMessage> Take(const v1::LoadProgress& from) {
  FieldCheck check("LoadProgress");
  LoadProgress to;
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  to.bytes_total = check.Range("bytes_total", from.bytes_total(), 0, kAny);
  to.bytes_done =
      check.Range("bytes_done", from.bytes_done(), 0, to.bytes_total);
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<WorkerMessage> Take(const v1::Loaded& from) {
  FieldCheck check("Loaded");
  Loaded to;
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  to.weights_bytes =
      check.Range("weights_bytes", from.weights_bytes(), 0, kAny);
  to.kv_bytes = check.Range("kv_bytes", from.kv_bytes(), 0, kAny);
  to.scratch_bytes =
      check.Range("scratch_bytes", from.scratch_bytes(), 0, kAny);
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

absl::StatusOr<WorkerMessage> Take(const v1::Failed& from) {
  FieldCheck check("Failed");
  Failed to;
  check.Require("operation", from.operation() == v1::OPERATION_LOAD ||
                                 from.operation() == v1::OPERATION_ACTIVATE);
  to.operation = from.operation() == v1::OPERATION_LOAD ? Operation::kLoad
                                                        : Operation::kActivate;
  to.load_key = check.Text("load_key", from.load_key(), kLoadKeyMax);
  to.epoch = from.epoch();
  to.error = DecodeError(from.error());
  if (!check.status().ok()) {
    return check.status();
  }
  return to;
}

}  // namespace

v1::WorkerMessage Encode(const WorkerMessage& message) {
  v1::WorkerMessage out;
  std::visit([&out](const auto& body) { Put(body, out); }, message);
  return out;
}

absl::StatusOr<WorkerMessage> Decode(const v1::WorkerMessage& message) {
  switch (message.body_case()) {
    case v1::WorkerMessage::kRegister:
      return Take(message.register_());
    case v1::WorkerMessage::kHeartbeat:
      return Take(message.heartbeat());
    case v1::WorkerMessage::kLoadProgress:
      return Take(message.load_progress());
    case v1::WorkerMessage::kLoaded:
      return Take(message.loaded());
    case v1::WorkerMessage::kActive:
      return Active{message.active().epoch()};
    case v1::WorkerMessage::kFailed:
      return Take(message.failed());
    case v1::WorkerMessage::kStageEnded:
      return StageEnded{message.stage_ended().epoch(),
                        DecodeError(message.stage_ended().error())};
    case v1::WorkerMessage::BODY_NOT_SET:
      break;
  }
  return MakeError(absl::StatusCode::kInvalidArgument, "control message",
                   "is of a kind that this version does not know");
}

}  // namespace millrace::control
