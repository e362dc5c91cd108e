#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/control_messages.h"
#include "transport/endpoint.h"

namespace millrace::worker {

// One session with the coordinator over gRPC. Read from one thread, Write from
// one other, Cancel from any.
class ControlClient {
 public:
  // Does not block; a coordinator that is not there shows at the first Read.
  static std::unique_ptr<ControlClient> Open(
      const transport::Endpoint& coordinator);
  virtual ~ControlClient() = default;

  // False when the stream has ended: see Finish.
  virtual bool Write(const control::WorkerMessage& message) = 0;
  // Waits for the next message. Any error is final; kUnavailable when the
  // stream has ended, kInvalidArgument for what does not decode.
  virtual absl::StatusOr<control::CoordinatorMessage> Read() = 0;
  // Makes a blocked Read and Write return.
  virtual void Cancel() = 0;
  // After the last Read and Write: why the session ended. Never OK.
  virtual absl::Status Finish() = 0;
};

}  // namespace millrace::worker
