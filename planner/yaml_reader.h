#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::planner {

// A YAML or JSON document as a tree of plain values; the only place that meets
// yaml-cpp and its exceptions. Keys given twice, anchors that multiply, and
// nesting beyond reason are refused.
struct Yaml {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string scalar;
  std::vector<Yaml> list;
  std::vector<std::string> keys;  // of a map, in the order of the file
  std::vector<Yaml> values;       // as many

  // Null when the key is missing or its value is null.
  [[nodiscard]] const Yaml* Find(absl::string_view key) const;
};

absl::StatusOr<Yaml> ParseYaml(absl::string_view text,
                               absl::string_view object);

// Fields of one map, with errors that name file and dotted key.
class YamlMap {
 public:
  static absl::StatusOr<YamlMap> From(const Yaml& value,
                                      absl::string_view object,
                                      absl::string_view path);
  [[nodiscard]] absl::Status OnlyKeys(
      const std::vector<absl::string_view>& known) const;
  [[nodiscard]] const Yaml* Find(absl::string_view key) const {
    return value_->Find(key);
  }
  [[nodiscard]] absl::Status ErrorAt(absl::string_view key,
                                     absl::string_view what) const;

  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, int64_t low,
                                    int64_t high, int64_t otherwise) const;
  // Bytes: a size as the command line takes it.
  absl::StatusOr<std::optional<int64_t>> Size(absl::string_view key) const;
  // Bytes per second, > 0.
  absl::StatusOr<std::optional<double>> Rate(absl::string_view key) const;
  // Seconds, >= 0.
  absl::StatusOr<std::optional<double>> Seconds(absl::string_view key) const;
  // A plain number in (low, high].
  absl::StatusOr<std::optional<double>> Positive(absl::string_view key) const;
  absl::StatusOr<std::optional<double>> NotNegative(
      absl::string_view key) const;
  [[nodiscard]] std::string PathOf(absl::string_view key) const;

 private:
  YamlMap(const Yaml& value, absl::string_view object, absl::string_view path)
      : value_(&value), object_(object), path_(path) {}
  [[nodiscard]] absl::StatusOr<const Yaml*> Scalar(absl::string_view key) const;

  const Yaml* value_;
  std::string object_;
  std::string path_;
};

}  // namespace millrace::planner
