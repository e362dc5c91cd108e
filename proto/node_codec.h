#pragma once

#include "absl/status/statusor.h"
#include "millrace/control/v1/node.pb.h"
#include "proto/node_messages.h"
#include "transport/link_meter.h"

namespace millrace::control {

// Between the generated types of a node's service and plain values. Decoding
// bounds every number, name and address; kInvalidArgument names the field.

v1::NodeDescription Encode(const NodeDescription& node);
absl::StatusOr<NodeDescription> Decode(const v1::NodeDescription& node);

v1::ModelDescription Encode(const ModelDescription& model);
absl::StatusOr<ModelDescription> Decode(const v1::ModelDescription& model);

v1::NodeRates Encode(const NodeRates& rates);
absl::StatusOr<NodeRates> Decode(const v1::NodeRates& rates);

v1::LinkRates Encode(const transport::LinkRounds& rounds);
absl::StatusOr<transport::LinkRounds> Decode(const v1::LinkRates& rates);

v1::OpenedLink Encode(const OpenedLink& link);
absl::StatusOr<OpenedLink> Decode(const v1::OpenedLink& link);

// A path that a coordinator would send in Load.
absl::StatusOr<std::string> Decode(const v1::FindModelRequest& request);
absl::StatusOr<transport::Endpoint> Decode(
    const v1::MeasureLinkRequest& request);

}  // namespace millrace::control
