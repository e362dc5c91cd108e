#include "coordinator/api/field_reader.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"
#include "coordinator/api/api_error.h"

namespace millrace::coordinator {
namespace {

// Beyond it a double no longer tells neighbouring whole numbers apart.
constexpr double kWholeDoubleMax = 9007199254740992.0;

}  // namespace

absl::string_view TextOf(const boost::json::string& text) {
  return {text.data(), text.size()};
}

std::optional<int64_t> WholeNumber(const Json& value) {
  if (value.is_int64()) {
    return value.get_int64();
  }
  if (value.is_double()) {
    const double number = value.get_double();
    if (std::fabs(number) <= kWholeDoubleMax && number == std::floor(number)) {
      return static_cast<int64_t>(number);
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<int32_t>> TokenIds(const boost::json::array& list,
                                              int64_t vocab_size,
                                              absl::string_view name) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const std::optional<int64_t> id = WholeNumber(item);
    if (!id.has_value() || *id < 0 || *id >= vocab_size) {
      return ParamError(
          name, absl::StrCat("token ids must be whole numbers from 0 to ",
                             vocab_size - 1));
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

absl::StatusOr<FieldReader> FieldReader::From(const Json& body,
                                              absl::string_view path) {
  if (!body.is_object()) {
    return ParamError(path, path.empty() ? "the body must be a JSON object"
                                         : "must be an object");
  }
  return FieldReader(body.get_object(), path);
}

const Json* FieldReader::Find(absl::string_view name) const {
  const Json* found = object_->if_contains({name.data(), name.size()});
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string FieldReader::NameOf(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

absl::Status FieldReader::Error(absl::string_view name,
                                absl::string_view what) const {
  return ParamError(NameOf(name), what);
}

absl::StatusOr<std::optional<int64_t>> FieldReader::Integer(
    absl::string_view name, int64_t low, int64_t high) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::optional<int64_t>();
  }
  const std::optional<int64_t> number = WholeNumber(*value);
  if (!number.has_value() || *number < low || *number > high) {
    return Error(
        name, absl::StrCat("must be a whole number from ", low, " to ", high));
  }
  return number;
}

absl::StatusOr<std::optional<double>> FieldReader::Number(
    absl::string_view name, double low, double high) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::optional<double>();
  }
  if (value->is_number()) {
    const double number = value->to_number<double>();
    if (std::isfinite(number) && number >= low && number <= high) {
      return std::optional<double>(number);
    }
  }
  return Error(name, absl::StrCat("must be a number from ", low, " to ", high));
}

absl::StatusOr<std::optional<bool>> FieldReader::Bool(
    absl::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::optional<bool>();
  }
  if (!value->is_bool()) {
    return Error(name, "must be true or false");
  }
  return std::optional<bool>(value->get_bool());
}

absl::StatusOr<std::optional<std::string>> FieldReader::String(
    absl::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::optional<std::string>();
  }
  if (!value->is_string()) {
    return Error(name, "must be a string");
  }
  return std::optional<std::string>(TextOf(value->get_string()));
}

absl::StatusOr<std::optional<uint64_t>> FieldReader::Seed(
    absl::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::optional<uint64_t>();
  }
  if (value->is_uint64()) {
    return std::optional<uint64_t>(value->get_uint64());
  }
  const std::optional<int64_t> number = WholeNumber(*value);
  if (!number.has_value()) {
    return Error(name, "must be a whole number of 64 bits");
  }
  return std::optional<uint64_t>(static_cast<uint64_t>(*number));
}

absl::StatusOr<std::vector<int32_t>> FieldReader::Ids(absl::string_view name,
                                                      int64_t high,
                                                      int64_t count_max) const {
  const Json* value = Find(name);
  if (value == nullptr) {
    return std::vector<int32_t>();
  }
  if (!value->is_array() ||
      static_cast<int64_t>(value->get_array().size()) > count_max) {
    return Error(name, absl::StrCat("must be a list of at most ", count_max,
                                    " token ids"));
  }
  return TokenIds(value->get_array(), high, NameOf(name));
}

}  // namespace millrace::coordinator
