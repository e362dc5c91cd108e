#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace millrace::coordinator {

// Reads the fields of one request body. null counts as not given; a value of
// the wrong type or out of range is a ParamError that names the field and its
// bounds but never shows the value. Borrows the JSON.
class FieldReader {
 public:
  // ParamError unless `body` is an object. `path` is put in front of names.
  static absl::StatusOr<FieldReader> From(const Json& body,
                                          absl::string_view path = "");

  // Null when missing or null.
  [[nodiscard]] const Json* Find(absl::string_view name) const;
  [[nodiscard]] bool Has(absl::string_view name) const {
    return Find(name) != nullptr;
  }

  [[nodiscard]] absl::StatusOr<std::optional<int64_t>> Integer(
      absl::string_view name, int64_t low, int64_t high) const;
  [[nodiscard]] absl::StatusOr<std::optional<double>> Number(
      absl::string_view name, double low, double high) const;
  [[nodiscard]] absl::StatusOr<std::optional<bool>> Bool(
      absl::string_view name) const;
  [[nodiscard]] absl::StatusOr<std::optional<std::string>> String(
      absl::string_view name) const;
  // Any 64-bit number, signed or not, as its bits.
  [[nodiscard]] absl::StatusOr<std::optional<uint64_t>> Seed(
      absl::string_view name) const;
  // A list of at most `count_max` whole numbers in [0, high).
  [[nodiscard]] absl::StatusOr<std::vector<int32_t>> Ids(
      absl::string_view name, int64_t high, int64_t count_max) const;

  [[nodiscard]] absl::Status Error(absl::string_view name,
                                   absl::string_view what) const;
  // "path.name", as it stands in `param`.
  [[nodiscard]] std::string NameOf(absl::string_view name) const;

  [[nodiscard]] const boost::json::object& raw() const { return *object_; }

 private:
  FieldReader(const boost::json::object& object, absl::string_view path)
      : object_(&object), path_(path) {}

  const boost::json::object* object_;
  std::string path_;
};

// The value as a whole number; nothing when it is none (5.0 is one, true and
// "5" are not).
std::optional<int64_t> WholeNumber(const Json& value);

absl::string_view TextOf(const boost::json::string& text);

// A list of token ids below `vocab_size`. `name` is the param of errors.
absl::StatusOr<std::vector<int32_t>> TokenIds(const boost::json::array& list,
                                              int64_t vocab_size,
                                              absl::string_view name);

}  // namespace millrace::coordinator
