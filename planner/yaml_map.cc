#include "planner/yaml_map.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"

namespace millrace::planner {
namespace {

absl::StatusOr<double> Number(const YamlMap& map, absl::string_view key,
                              const Yaml& value, double least) {
  double number = 0;
  if (!absl::SimpleAtod(value.scalar, &number) ||
      !(number >= least && number <= kNumberMax)) {
    return map.ErrorAt(
        key, absl::StrCat("must be a number ",
                          least == 0 ? "of 0 or more" : "above 0", ", at most ",
                          kNumberMax));
  }
  return number;
}

}  // namespace

absl::StatusOr<YamlMap> YamlMap::From(const Yaml& value,
                                      absl::string_view object,
                                      absl::string_view path) {
  if (value.kind != Yaml::Kind::kMap) {
    return InputError(object,
                      path.empty() ? std::string("must be a map of fields")
                                   : absl::StrCat(path, ": must be a map"),
                      "write fields as `name: value`");
  }
  return YamlMap(value, object, path);
}

std::string YamlMap::PathOf(absl::string_view key) const {
  return absl::StrCat(path_, path_.empty() ? "" : ".", Printable(key));
}

absl::Status YamlMap::ErrorAt(absl::string_view key, absl::string_view what,
                              absl::string_view hint) const {
  return InputError(
      object_, absl::StrCat(PathOf(key), ": ", what),
      hint.empty() ? "see docs/guide.md for the fields of a file" : hint);
}

absl::Status YamlMap::OnlyKeys(
    const std::vector<absl::string_view>& known) const {
  for (const std::string& key : value_->keys) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return ErrorAt(
          key, "is not a known field",
          absl::StrCat("give of these: ", absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const Yaml*> YamlMap::Scalar(absl::string_view key) const {
  const Yaml* value = Find(key);
  if (value != nullptr && value->kind != Yaml::Kind::kScalar) {
    return ErrorAt(key, "must be a single value");
  }
  return value;
}

absl::StatusOr<std::string> YamlMap::String(absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr || value->scalar.empty()) {
    return ErrorAt(key, "is missing", absl::StrCat("give ", key));
  }
  if (value->scalar.size() > kTextMax) {
    return ErrorAt(key, absl::StrCat("is longer than ", kTextMax, " bytes"),
                   "shorten it");
  }
  return value->scalar;
}

absl::StatusOr<std::string> YamlMap::StringOr(
    absl::string_view key, absl::string_view otherwise) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr || value->scalar.empty()) {
    return std::string(otherwise);
  }
  return String(key);
}

absl::StatusOr<int64_t> YamlMap::SizeOr(absl::string_view key,
                                        int64_t otherwise) const {
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<int64_t> size, Size(key));
  return size.value_or(otherwise);
}

absl::StatusOr<int64_t> YamlMap::IntegerOr(absl::string_view key, int64_t low,
                                           int64_t high,
                                           int64_t otherwise) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return otherwise;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value->scalar, &number) || number < low ||
      number > high) {
    return ErrorAt(
        key, absl::StrCat("must be a whole number from ", low, " to ", high));
  }
  return number;
}

absl::StatusOr<std::optional<int64_t>> YamlMap::Size(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<int64_t>();
  }
  if (const absl::StatusOr<int64_t> size = ParseSize(value->scalar);
      size.ok()) {
    return std::optional<int64_t>(*size);
  }
  // A plain number may also come as 4.4e10.
  double number = 0;
  if (absl::SimpleAtod(value->scalar, &number) && number >= 0 &&
      number < 9223372036854775808.0) {
    return std::optional<int64_t>(static_cast<int64_t>(number));
  }
  return ErrorAt(key, "must be a size of 0 or more and below 2^63",
                 "write it as 44GB, 512MiB or plain bytes");
}

absl::StatusOr<std::optional<double>> YamlMap::Rate(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  const absl::StatusOr<double> rate = ParseRate(value->scalar);
  if (!rate.ok() || !(*rate >= kRateLeast && *rate <= kNumberMax)) {
    return ErrorAt(key, "must be a rate above 0",
                   "write it as 200GB/s, 25Gbit/s or plain bytes per second");
  }
  return std::optional<double>(*rate);
}

absl::StatusOr<std::optional<double>> YamlMap::Seconds(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  const absl::StatusOr<double> seconds = ParseSeconds(value->scalar);
  if (!seconds.ok() || !(*seconds <= kNumberMax)) {
    return ErrorAt(key, "must be a duration of 0 or more",
                   "write it as 30us, 2ms or plain seconds");
  }
  return std::optional<double>(*seconds);
}

absl::StatusOr<std::optional<double>> YamlMap::Positive(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  MILLRACE_ASSIGN_OR_RETURN(const double number,
                            Number(*this, key, *value, kRateLeast));
  return std::optional<double>(number);
}

absl::StatusOr<std::optional<double>> YamlMap::NotNegative(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  MILLRACE_ASSIGN_OR_RETURN(const double number, Number(*this, key, *value, 0));
  return std::optional<double>(number);
}

}  // namespace millrace::planner
