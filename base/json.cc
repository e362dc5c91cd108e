#include "base/json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "boost/json/basic_parser_impl.hpp"
#include "boost/json/error.hpp"
#include "boost/json/object.hpp"
#include "boost/json/serialize.hpp"
#include "boost/json/value_stack.hpp"

namespace millrace {
namespace {

namespace json = boost::json;

json::string_view View(absl::string_view text) {
  return {text.data(), text.size()};
}

absl::string_view View(json::string_view text) {
  return {text.data(), text.size()};
}

// Builds the value and watches over what Boost 1.81 does not: the keys of the
// objects that are open (there, the last of several equal keys wins without a
// word) and the last digit of numbers (there, off by one for one in ten doubles
// of 17 digits).
class ValueBuilder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names that Boost.JSON asks for.
  static constexpr std::size_t max_object_size = std::size_t{1} << 40;
  static constexpr std::size_t max_array_size = std::size_t{1} << 40;
  static constexpr std::size_t max_key_size = std::size_t{1} << 40;
  static constexpr std::size_t max_string_size = std::size_t{1} << 40;
  // NOLINTEND(readability-identifier-naming)

  explicit ValueBuilder(bool refuse_repeated_keys)
      : refuse_repeated_keys_(refuse_repeated_keys) {
    stack_.reset();
  }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t size, json::error_code&) {
    open_.pop_back();
    stack_.push_object(size);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t size, json::error_code&) {
    stack_.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& error) {
    key_.append(part.data(), part.size());
    if (refuse_repeated_keys_ && !open_.back().insert(key_).second) {
      repeated_ = true;
      error = json::error::syntax;
      return false;
    }
    key_.clear();
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t number, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double number, json::string_view part, json::error_code&) {
    number_.append(part.data(), part.size());
    double exact = 0;
    const auto [end, error] =
        std::from_chars(number_.data(), number_.data() + number_.size(), exact);
    const bool whole = end == number_.data() + number_.size();
    stack_.push_double(whole && error == std::errc() ? exact : number);
    number_.clear();
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  // The key that was given twice; null when parsing did not end for that.
  [[nodiscard]] const std::string* repeated_key() const {
    return repeated_ ? &key_ : nullptr;
  }
  // After a whole document.
  [[nodiscard]] Json Take() { return stack_.release(); }

 private:
  const bool refuse_repeated_keys_;
  json::value_stack stack_;
  std::vector<absl::flat_hash_set<std::string>> open_;
  std::string key_;
  std::string number_;
  bool repeated_ = false;
};

std::string KindName(const Json& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "a list";
    case json::kind::object:
      return "an object";
  }
  return "a value";
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view object,
                               const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.bytes_max) {
    return InputError(object, absl::StrCat("is ", text.size(),
                                           " bytes of JSON, more than the ",
                                           limits.bytes_max, " allowed"));
  }
  json::parse_options options;
  options.max_depth = static_cast<std::size_t>(limits.depth_max);
  json::error_code error;
  json::basic_parser<ValueBuilder> parser(options, limits.refuse_repeated_keys);
  const std::size_t used =
      parser.write_some(false, text.data(), text.size(), error);
  if (const std::string* key = parser.handler().repeated_key()) {
    return InputError(object,
                      absl::StrCat("key '", Printable(*key),
                                   "' is given twice near byte ", used));
  }
  if (!error && used < text.size()) {
    error = json::error::extra_data;
  }
  if (error) {
    return InputError(object,
                      absl::StrCat("is no valid JSON: ", error.message()));
  }
  return parser.handler().Take();
}

std::string WriteJson(const Json& value) { return json::serialize(value); }

absl::StatusOr<JsonObject> JsonObject::From(const Json& value,
                                            absl::string_view file,
                                            absl::string_view path) {
  if (!value.is_object()) {
    const std::string what =
        absl::StrCat("must be an object, is ", KindName(value));
    return InputError(file,
                      path.empty() ? what : absl::StrCat(path, ": ", what));
  }
  return JsonObject(value.get_object(), file, path);
}

const Json* JsonObject::Find(absl::string_view key) const {
  const Json* found = object_->if_contains(View(key));
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool JsonObject::Has(absl::string_view key) const {
  return Find(key) != nullptr;
}

absl::Status JsonObject::ErrorAt(absl::string_view key,
                                 absl::string_view what) const {
  return InputError(file_, absl::StrCat(path_, path_.empty() ? "" : ".",
                                        Printable(key), ": ", what));
}

absl::StatusOr<int64_t> JsonObject::Integer(absl::string_view key, int64_t low,
                                            int64_t high) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  const absl::Status wrong = ErrorAt(
      key, absl::StrCat("must be a whole number from ", low, " to ", high));
  int64_t number = 0;
  if (value->is_int64()) {
    number = value->get_int64();
  } else if (value->is_double()) {
    const double real = value->get_double();
    if (!(std::fabs(real) <= 9007199254740992.0) || real != std::floor(real)) {
      return wrong;
    }
    number = static_cast<int64_t>(real);
  } else {
    return wrong;
  }
  if (number < low || number > high) {
    return wrong;
  }
  return number;
}

absl::StatusOr<int64_t> JsonObject::IntegerOr(absl::string_view key,
                                              int64_t low, int64_t high,
                                              int64_t otherwise) const {
  if (!Has(key)) {
    return otherwise;
  }
  return Integer(key, low, high);
}

absl::StatusOr<double> JsonObject::Number(absl::string_view key, double low,
                                          double high) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  if (value->is_number()) {
    const double number = value->to_number<double>();
    if (std::isfinite(number) && number >= low && number <= high) {
      return number;
    }
  }
  return ErrorAt(key,
                 absl::StrCat("must be a number from ", low, " to ", high));
}

absl::StatusOr<double> JsonObject::NumberOr(absl::string_view key, double low,
                                            double high,
                                            double otherwise) const {
  if (!Has(key)) {
    return otherwise;
  }
  return Number(key, low, high);
}

absl::StatusOr<bool> JsonObject::BoolOr(absl::string_view key,
                                        bool otherwise) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_bool()) {
    return ErrorAt(key, "must be true or false");
  }
  return value->get_bool();
}

absl::StatusOr<std::string> JsonObject::String(absl::string_view key) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  if (!value->is_string()) {
    return ErrorAt(key,
                   absl::StrCat("must be a string, is ", KindName(*value)));
  }
  return std::string(View(value->get_string()));
}

absl::StatusOr<std::string> JsonObject::StringOr(
    absl::string_view key, absl::string_view otherwise) const {
  if (!Has(key)) {
    return std::string(otherwise);
  }
  return String(key);
}

absl::StatusOr<JsonObject> JsonObject::Object(absl::string_view key) const {
  const Json* value = Find(key);
  if (value == nullptr) {
    return ErrorAt(key, "is missing");
  }
  return From(*value, file_,
              absl::StrCat(path_, path_.empty() ? "" : ".", key));
}

absl::Status JsonObject::OnlyKeys(
    const std::vector<absl::string_view>& known) const {
  for (const auto& member : *object_) {
    bool found = false;
    for (absl::string_view key : known) {
      found = found || key == View(member.key());
    }
    if (!found) {
      return ErrorAt(View(member.key()), "is not a known field");
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
