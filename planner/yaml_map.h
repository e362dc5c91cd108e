#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/yaml_reader.h"

namespace millrace::planner {

// Numbers beyond this are nobody's hardware; sums and quotients of what stays
// below are finite.
inline constexpr double kNumberMax = 1e30;
inline constexpr double kRateLeast = 1e-9;
// Longest name, label or key.
inline constexpr size_t kTextMax = 128;

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
  // "file: path.key: what"; without a hint: to look at the user guide.
  [[nodiscard]] absl::Status ErrorAt(absl::string_view key,
                                     absl::string_view what,
                                     absl::string_view hint = "") const;

  // Required, of 1 to kTextMax bytes.
  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<std::string> StringOr(absl::string_view key,
                                       absl::string_view otherwise) const;
  absl::StatusOr<int64_t> IntegerOr(absl::string_view key, int64_t low,
                                    int64_t high, int64_t otherwise) const;
  // Bytes: a size as the command line takes it.
  absl::StatusOr<std::optional<int64_t>> Size(absl::string_view key) const;
  absl::StatusOr<int64_t> SizeOr(absl::string_view key,
                                 int64_t otherwise) const;
  // Bytes per second, in [kRateLeast, kNumberMax].
  absl::StatusOr<std::optional<double>> Rate(absl::string_view key) const;
  // Seconds, in [0, kNumberMax].
  absl::StatusOr<std::optional<double>> Seconds(absl::string_view key) const;
  // A plain number in [kRateLeast, kNumberMax].
  absl::StatusOr<std::optional<double>> Positive(absl::string_view key) const;
  // A plain number in [0, kNumberMax].
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
