#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/endpoint.h"

namespace millrace::cli {

// The HOST:PORT that an option gave; UsageError naming the option.
absl::StatusOr<transport::Endpoint> ParseEndpointOption(
    absl::string_view option, absl::string_view text);

}  // namespace millrace::cli
