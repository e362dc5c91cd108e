#include "proto/field_check.h"

#include <algorithm>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "proto/control_messages.h"

namespace millrace::control {

void FieldCheck::Require(absl::string_view field, bool holds) {
  if (!holds && status_.ok()) {
    status_ = MakeError(absl::StatusCode::kInvalidArgument,
                        absl::StrCat("control message ", message_),
                        absl::StrCat("field ", field, " is out of range"));
  }
}

int64_t FieldCheck::Range(absl::string_view field, int64_t value, int64_t low,
                          int64_t high) {
  const bool holds = value >= low && value <= high;
  Require(field, holds);
  return holds ? value : low;
}

int64_t FieldCheck::Size(absl::string_view field, uint64_t value) {
  const bool holds = value <= static_cast<uint64_t>(INT64_MAX);
  Require(field, holds);
  return holds ? static_cast<int64_t>(value) : 0;
}

std::string FieldCheck::Text(absl::string_view field, const std::string& value,
                             size_t bytes_max) {
  Require(field,
          value.size() <= bytes_max &&
              std::none_of(value.begin(), value.end(), [](char c) {
                return absl::ascii_iscntrl(static_cast<unsigned char>(c));
              }));
  return status_.ok() ? value : "";
}

std::string FieldCheck::Name(absl::string_view field,
                             const std::string& value) {
  Require(field,
          !value.empty() && value.size() <= kNameBytesMax &&
              std::all_of(value.begin(), value.end(), [](char c) {
                return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       c == '.' || c == '_' || c == '-';
              }));
  return status_.ok() ? value : "";
}

transport::Endpoint FieldCheck::Address(absl::string_view field,
                                        const std::string& value) {
  absl::StatusOr<transport::Endpoint> endpoint =
      transport::ParseEndpoint(value);
  Require(field, endpoint.ok() && endpoint->port != 0);
  return status_.ok() ? *std::move(endpoint) : transport::Endpoint();
}

transport::LinkToken FieldCheck::Token(absl::string_view field,
                                       const std::string& value) {
  transport::LinkToken token = {};
  Require(field, value.size() == token.size());
  if (value.size() == token.size()) {
    std::memcpy(token.data(), value.data(), token.size());
  }
  return token;
}

}  // namespace millrace::control
