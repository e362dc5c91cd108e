#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "boost/json/fwd.hpp"
#include "boost/json/value.hpp"

namespace millrace {

using Json = boost::json::value;

struct JsonLimits {
  int64_t bytes_max = int64_t{256} << 20;
  int depth_max = 64;
  // Off only for large files whose reader checks repetition itself.
  bool refuse_repeated_keys = true;
};

// Parses one strict JSON text (UTF-8, no comments, no trailing comma).
// `object` names the text in errors, usually a path.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view object,
                               const JsonLimits& limits = {});

std::string WriteJson(const Json& value);

// Reads fields of one JSON object and names the file and the dotted key in
// every error: "config.json: num_hidden_layers: must be a whole number".
// Borrowing: the value outlives the reader.
class JsonObject {
 public:
  // Fails unless `value` is an object. `path` is the dotted key of it, may be
  // empty.
  static absl::StatusOr<JsonObject> From(const Json& value,
                                         absl::string_view file,
                                         absl::string_view path = "");

  // Whether the key is there with a value other than null.
  [[nodiscard]] bool Has(absl::string_view key) const;
  // Null when missing or null.
  [[nodiscard]] const Json* Find(absl::string_view key) const;

  // Required; a whole number in [low, high]. 3.0 counts as whole.
  [[nodiscard]] absl::StatusOr<int64_t> Integer(absl::string_view key,
                                                int64_t low,
                                                int64_t high) const;
  [[nodiscard]] absl::StatusOr<int64_t> IntegerOr(absl::string_view key,
                                                  int64_t low, int64_t high,
                                                  int64_t otherwise) const;
  // Required; finite, in [low, high].
  [[nodiscard]] absl::StatusOr<double> Number(absl::string_view key, double low,
                                              double high) const;
  [[nodiscard]] absl::StatusOr<double> NumberOr(absl::string_view key,
                                                double low, double high,
                                                double otherwise) const;
  [[nodiscard]] absl::StatusOr<bool> BoolOr(absl::string_view key,
                                            bool otherwise) const;
  [[nodiscard]] absl::StatusOr<std::string> String(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<std::string> StringOr(
      absl::string_view key, absl::string_view otherwise) const;
  [[nodiscard]] absl::StatusOr<JsonObject> Object(absl::string_view key) const;

  // "file: path.key: what"
  [[nodiscard]] absl::Status ErrorAt(absl::string_view key,
                                     absl::string_view what) const;

  // Fails with the first key that is not in `known`.
  [[nodiscard]] absl::Status OnlyKeys(
      const std::vector<absl::string_view>& known) const;

  [[nodiscard]] const boost::json::object& raw() const { return *object_; }

 private:
  JsonObject(const boost::json::object& object, absl::string_view file,
             absl::string_view path)
      : object_(&object), file_(file), path_(path) {}

  const boost::json::object* object_;
  std::string file_;
  std::string path_;
};

}  // namespace millrace
