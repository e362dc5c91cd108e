#include "planner/yaml_reader.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "yaml-cpp/yaml.h"

namespace millrace::planner {
namespace {

constexpr int kDepthMax = 32;
// Values in one file; aliases count each time they are used, so that nested
// ones cannot multiply without end.
constexpr int64_t kValuesMax = 4'000'000;

class Converter {
 public:
  explicit Converter(absl::string_view object) : object_(object) {}

  absl::StatusOr<Yaml> Convert(const YAML::Node& node, int depth) {
    if (++values_ > kValuesMax || depth > kDepthMax) {
      return InputError(object_, "is nested too deep or holds too many values");
    }
    Yaml out;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return out;
      case YAML::NodeType::Scalar:
        out.kind = Yaml::Kind::kScalar;
        out.scalar = node.Scalar();
        return out;
      case YAML::NodeType::Sequence:
        out.kind = Yaml::Kind::kList;
        for (const auto& item : node) {
          MILLRACE_ASSIGN_OR_RETURN(Yaml value, Convert(item, depth + 1));
          out.list.push_back(std::move(value));
        }
        return out;
      case YAML::NodeType::Map:
        return ConvertMap(node, depth);
    }
    return out;
  }

 private:
  absl::StatusOr<Yaml> ConvertMap(const YAML::Node& node, int depth) {
    Yaml out;
    out.kind = Yaml::Kind::kMap;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        return InputError(object_, "has a key that is no text");
      }
      const std::string& key = member.first.Scalar();
      if (std::find(out.keys.begin(), out.keys.end(), key) != out.keys.end()) {
        return InputError(
            object_, absl::StrCat("key '", Printable(key), "' is given twice"));
      }
      MILLRACE_ASSIGN_OR_RETURN(Yaml value, Convert(member.second, depth + 1));
      out.keys.push_back(key);
      out.values.push_back(std::move(value));
    }
    return out;
  }

  const std::string object_;
  int64_t values_ = 0;
};

absl::StatusOr<double> Number(const YamlMap& map, absl::string_view key,
                              const Yaml& value, bool zero_allowed) {
  double number = 0;
  if (!absl::SimpleAtod(value.scalar, &number) || !std::isfinite(number) ||
      number < 0 || (number == 0 && !zero_allowed)) {
    return map.ErrorAt(key, zero_allowed ? "must be a number of 0 or more"
                                         : "must be a number above 0");
  }
  return number;
}

}  // namespace

const Yaml* Yaml::Find(absl::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end()) {
    return nullptr;
  }
  const Yaml& value = values[static_cast<size_t>(found - keys.begin())];
  return value.kind == Kind::kNull ? nullptr : &value;
}

absl::StatusOr<Yaml> ParseYaml(absl::string_view text,
                               absl::string_view object) {
  // yaml-cpp reports by exception; nothing else here throws.
  try {
    return Converter(object).Convert(YAML::Load(std::string(text)), 0);
  } catch (const std::exception& error) {
    return InputError(object, absl::StrCat("is neither JSON nor YAML: ",
                                           Printable(error.what(), 200)));
  }
}

absl::StatusOr<YamlMap> YamlMap::From(const Yaml& value,
                                      absl::string_view object,
                                      absl::string_view path) {
  if (value.kind != Yaml::Kind::kMap) {
    return InputError(object, path.empty()
                                  ? std::string("must be a map of fields")
                                  : absl::StrCat(path, ": must be a map"));
  }
  return YamlMap(value, object, path);
}

std::string YamlMap::PathOf(absl::string_view key) const {
  return absl::StrCat(path_, path_.empty() ? "" : ".", Printable(key));
}

absl::Status YamlMap::ErrorAt(absl::string_view key,
                              absl::string_view what) const {
  return InputError(object_, absl::StrCat(PathOf(key), ": ", what));
}

absl::Status YamlMap::OnlyKeys(
    const std::vector<absl::string_view>& known) const {
  for (const std::string& key : value_->keys) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return ErrorAt(key, "is not a known field");
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
    return ErrorAt(key, "is missing");
  }
  return value->scalar;
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
      number < 9.2e18) {
    return std::optional<int64_t>(static_cast<int64_t>(number));
  }
  return ErrorAt(key, "must be a size, as 44GB or 512MiB, of 0 or more");
}

absl::StatusOr<std::optional<double>> YamlMap::Rate(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  const absl::StatusOr<double> rate = ParseRate(value->scalar);
  if (!rate.ok() || !(*rate > 0)) {
    return ErrorAt(key, "must be a rate above 0, as 200GB/s or 25Gbit/s");
  }
  return std::optional<double>(*rate);
}

absl::StatusOr<std::optional<double>> YamlMap::Seconds(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  const absl::StatusOr<absl::Duration> duration = ParseDuration(value->scalar);
  if (!duration.ok()) {
    return ErrorAt(key, "must be a duration, as 30us or 2ms");
  }
  return std::optional<double>(absl::ToDoubleSeconds(*duration));
}

absl::StatusOr<std::optional<double>> YamlMap::Positive(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  MILLRACE_ASSIGN_OR_RETURN(const double number,
                            Number(*this, key, *value, false));
  return std::optional<double>(number);
}

absl::StatusOr<std::optional<double>> YamlMap::NotNegative(
    absl::string_view key) const {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml* value, Scalar(key));
  if (value == nullptr) {
    return std::optional<double>();
  }
  MILLRACE_ASSIGN_OR_RETURN(const double number,
                            Number(*this, key, *value, true));
  return std::optional<double>(number);
}

}  // namespace millrace::planner
