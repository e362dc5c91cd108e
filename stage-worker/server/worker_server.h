#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/kernel_use.h"
#include "stage-worker/server/stage_factory.h"
#include "transport/endpoint.h"

namespace millrace::worker {

// A change of state that people and scripts follow.
struct WorkerEvent {
  enum class Kind {
    kRegistered,    // the coordinator has let it in
    kLoaded,        // memory is set
    kActive,        // epoch is set
    kInactive,      // epoch is set; reason says why it ended
    kFailed,        // a command could not be carried out; reason
    kDisconnected,  // no session; told once per reason
  };
  Kind kind = Kind::kRegistered;
  uint64_t epoch = 0;
  StageMemory memory;
  absl::Status reason;
};

// A stage worker: dials the coordinator, keeps one session, holds one stage.
// When the session ends it keeps its weights and dials again, for ever.
class WorkerServer {
 public:
  struct Options {
    transport::Endpoint coordinator;
    transport::Endpoint listen;  // for links; port 0: any free one
    std::string name;            // 1 to 64 of [A-Za-z0-9._-]
    std::string version;
    std::string isa;
    std::vector<control::KernelUse> kernels = {};  // for people and metrics
    int64_t memory_bytes = 0;  // hard budget of the process; 0: not limited
    bool insecure = false;     // lets any of the addresses be off loopback
    StageFactory* factory = nullptr;  // outlives the server
    // From the server's threads, must return soon; nullable.
    std::function<void(const WorkerEvent&)> on_event;
  };
  // Binds the links' port. UsageError: a name or address that may not be;
  // kUnavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Create(Options options);
  virtual ~WorkerServer() = default;

  // Where it accepts links.
  [[nodiscard]] virtual const transport::Endpoint& data_endpoint() const = 0;

  // Of the stage that is loaded; empty: none. Any thread.
  [[nodiscard]] virtual std::string load_key() const = 0;

  // Serves until Stop or until the coordinator shuts it down, then ends the
  // stage. Once.
  virtual void Run() = 0;
  // Any thread; returns at once.
  virtual void Stop() = 0;
};

}  // namespace millrace::worker
