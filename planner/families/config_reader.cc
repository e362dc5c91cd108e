#include "planner/families/config_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/error.h"
#include "boost/json/array.hpp"

namespace millrace::planner {
namespace {

absl::string_view View(const Json& value) {
  const auto& text = value.get_string();
  return {text.data(), text.size()};
}

}  // namespace

template <typename T>
T ConfigReader::Take(absl::StatusOr<T> value, T otherwise) {
  if (value.ok()) {
    return *std::move(value);
  }
  status_.Update(value.status());
  return otherwise;
}

int64_t ConfigReader::Need(absl::string_view key, int64_t high) {
  return NeedIn(text_, key, high);
}

int64_t ConfigReader::NeedIn(const JsonObject& section, absl::string_view key,
                             int64_t high) {
  return Take<int64_t>(section.Integer(key, 1, high), 1);
}

int64_t ConfigReader::NeedAny(std::initializer_list<absl::string_view> keys,
                              int64_t high) {
  for (const absl::string_view key : keys) {
    if (text_.Has(key)) {
      return Need(key, high);
    }
  }
  return Need(*keys.begin(), high);
}

int64_t ConfigReader::Or(absl::string_view key, int64_t low, int64_t high,
                         int64_t otherwise) {
  return Take<int64_t>(text_.IntegerOr(key, low, high, otherwise), low);
}

double ConfigReader::NumberOr(absl::string_view key, double low, double high,
                              double otherwise) {
  return Take<double>(text_.NumberOr(key, low, high, otherwise), low);
}

bool ConfigReader::Flag(absl::string_view key, bool otherwise) {
  return Take<bool>(text_.BoolOr(key, otherwise), otherwise);
}

bool ConfigReader::FlagOfEither(absl::string_view key, bool otherwise) {
  return text_.Has(key) ? Flag(key, otherwise)
                        : Take<bool>(whole_.BoolOr(key, otherwise), otherwise);
}

void ConfigReader::Fail(absl::string_view key, absl::string_view what) {
  status_.Update(text_.ErrorAt(key, what));
}

JsonObject ConfigReader::Section(absl::string_view key) {
  return Take<JsonObject>(text_.Object(key), text_);
}

std::vector<bool> ConfigReader::LayersOfKind(
    absl::string_view key, int64_t num_layers, absl::string_view name,
    std::initializer_list<absl::string_view> others) {
  std::vector<bool> out(static_cast<size_t>(num_layers));
  const Json* list = text_.Find(key);
  if (list == nullptr || !list->is_array() ||
      list->get_array().size() != out.size()) {
    Fail(key, list == nullptr
                  ? "is missing"
                  : absl::StrCat("must be a list with one name for each of ",
                                 Counted(num_layers, "layer")));
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const Json& entry = list->get_array()[i];
    const absl::string_view kind =
        entry.is_string() ? View(entry) : absl::string_view();
    bool known = kind == name;
    out[i] = known;
    for (const absl::string_view other : others) {
      known = known || kind == other;
    }
    if (!known) {
      Fail(key, absl::StrCat("must hold only ", name, " and ",
                             absl::StrJoin(others, ", ")));
      return out;
    }
  }
  return out;
}

std::vector<bool> ConfigReader::LayersInList(const JsonObject& object,
                                             absl::string_view key,
                                             int64_t num_layers,
                                             int64_t first) {
  std::vector<bool> out(static_cast<size_t>(num_layers));
  const Json* list = object.Find(key);
  if (list == nullptr || !list->is_array()) {
    status_.Update(object.ErrorAt(
        key, list == nullptr ? "is missing" : "must be a list of layers"));
    return out;
  }
  for (const Json& entry : list->get_array()) {
    const int64_t layer = entry.is_int64() ? entry.get_int64() - first : -1;
    if (layer < 0 || layer >= num_layers || out[static_cast<size_t>(layer)]) {
      status_.Update(object.ErrorAt(
          key, absl::StrCat("must hold each of its layers once, numbers from ",
                            first, " to ", num_layers - 1 + first)));
      return out;
    }
    out[static_cast<size_t>(layer)] = true;
  }
  return out;
}

}  // namespace millrace::planner
