#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/kernel_use.h"
#include "transport/endpoint.h"
#include "transport/frame.h"
#include "transport/tcp/tcp_handshake.h"

namespace millrace::control {

// The messages of the control plane as plain values; meanings and units stand
// in millrace/control/v1/control.proto. Decoded ones are in range.

// Of the control plane and the links together; equal on all nodes.
inline constexpr uint32_t kWireVersion = 1;

inline constexpr size_t kNameBytesMax = 64;

struct Register {
  std::string name;
  std::string version;
  uint32_t wire_version = kWireVersion;  // another: only the name is read
  int64_t memory_bytes = 0;              // 0: not limited
  transport::Endpoint data_address;
  std::string isa;
  int64_t pid = 0;
  int64_t resident_bytes = 0;
  std::string load_key;  // empty: holds no stage
  std::vector<KernelUse> kernels = {};
};

struct StageCounters {
  int64_t frames = 0;
  int64_t rows = 0;
  int64_t bytes_received = 0;
  int64_t bytes_sent = 0;
  absl::Duration busy;
  absl::Duration wait_for_input;
  absl::Duration wait_for_credit;
  int64_t sequences_open = 0;
  int64_t kv_blocks_used = 0;
  int64_t kv_blocks_total = 0;
};

struct Heartbeat {
  StageCounters stage;  // zeros while no stage is loaded
  int64_t resident_bytes = 0;
};

struct LoadProgress {
  std::string load_key;
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

struct Loaded {
  std::string load_key;
  int64_t weights_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t scratch_bytes = 0;
};

struct Active {
  uint64_t epoch = 0;
};

enum class Operation { kLoad, kActivate };

struct Failed {
  Operation operation = Operation::kLoad;
  std::string load_key;  // kLoad
  uint64_t epoch = 0;    // kActivate
  absl::Status error;    // with kind, object and hint
};

struct StageEnded {
  uint64_t epoch = 0;
  absl::Status error;
};

using WorkerMessage = std::variant<Register, Heartbeat, LoadProgress, Loaded,
                                   Active, Failed, StageEnded>;

struct Welcome {
  absl::Duration heartbeat;
  absl::Duration lease;
};

enum class ComputeMode { kFast, kExact };
enum class KvType { kF32, kF16, kBf16, kInt8 };

struct Stage {
  int64_t first_layer = 0;
  int64_t last_layer = 0;  // included
  bool holds_embedding = false;
  bool holds_head = false;
  ComputeMode compute = ComputeMode::kFast;
  KvType kv_type = KvType::kF16;
  int64_t context = 0;
  int64_t sequences = 1;
  int64_t slots = 1;
  int64_t rows_max = 0;
  int64_t prefill_chunk = 0;
  int num_threads = 0;  // 0: the worker's own choice
};

struct Load {
  std::string load_key;
  std::string model;
  std::string model_digest;
  Stage stage;
};

struct Activate {
  uint64_t epoch = 0;
  std::string load_key;
  uint32_t segment = 0;
  transport::LinkToken upstream_token = {};
  transport::Endpoint downstream_address;
  transport::LinkToken downstream_token = {};
  transport::FrameLimits upstream_limits;
  transport::FrameLimits downstream_limits;
  uint32_t upstream_window = 1;  // frames under way on that link
  uint32_t downstream_window = 1;
  absl::Duration timeout;
};

struct Deactivate {
  uint64_t epoch = 0;
};
struct Drain {};
struct Shutdown {};

using CoordinatorMessage =
    std::variant<Welcome, Load, Activate, Deactivate, Drain, Shutdown>;

// Names the model and stage of a Load; equal keys, equal stages.
std::string LoadKeyOf(const std::string& model_digest, const Stage& stage);

}  // namespace millrace::control
