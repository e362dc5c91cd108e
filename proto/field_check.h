#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/endpoint.h"
#include "transport/tcp/tcp_handshake.h"

namespace millrace::control {

// Collects the first field of a message that is out of range, so that a decoder
// reads as a list of fields.
class FieldCheck {
 public:
  explicit FieldCheck(absl::string_view message) : message_(message) {}

  // `value` when it lies in [low, high], else `low`.
  int64_t Range(absl::string_view field, int64_t value, int64_t low,
                int64_t high);
  // Sizes and counts off the wire as unsigned.
  int64_t Size(absl::string_view field, uint64_t value);
  // At most `bytes_max` bytes, no control characters.
  std::string Text(absl::string_view field, const std::string& value,
                   size_t bytes_max);
  // 1 to 64 of [A-Za-z0-9._-].
  std::string Name(absl::string_view field, const std::string& value);
  transport::Endpoint Address(absl::string_view field,
                              const std::string& value);
  transport::LinkToken Token(absl::string_view field, const std::string& value);
  void Require(absl::string_view field, bool holds);

  // OK, or kInvalidArgument that names the field.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  const absl::string_view message_;
  absl::Status status_;
};

}  // namespace millrace::control
