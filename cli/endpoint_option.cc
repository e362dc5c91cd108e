#include "cli/endpoint_option.h"

#include "base/error.h"

namespace millrace::cli {

absl::StatusOr<transport::Endpoint> ParseEndpointOption(
    absl::string_view option, absl::string_view text) {
  absl::StatusOr<transport::Endpoint> endpoint = transport::ParseEndpoint(text);
  if (!endpoint.ok()) {
    return WithObject(endpoint.status(), option);
  }
  return endpoint;
}

}  // namespace millrace::cli
