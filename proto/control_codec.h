#pragma once

#include "absl/status/statusor.h"
#include "millrace/control/v1/control.pb.h"
#include "proto/control_messages.h"

namespace millrace::control {

// Between the generated types and plain values. Decoding bounds every number,
// name and address; kInvalidArgument names the field.

v1::WorkerMessage Encode(const WorkerMessage& message);
absl::StatusOr<WorkerMessage> Decode(const v1::WorkerMessage& message);

v1::CoordinatorMessage Encode(const CoordinatorMessage& message);
absl::StatusOr<CoordinatorMessage> Decode(
    const v1::CoordinatorMessage& message);

}  // namespace millrace::control
