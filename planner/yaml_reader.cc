#include "planner/yaml_reader.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace millrace::planner {
namespace {

constexpr int kDepthMax = 32;
// Values in one file; aliases count each time they are used, so that nested
// ones cannot multiply without end.
constexpr int64_t kValuesMax = 4'000'000;

// Text beyond this must be JSON, which is read in a fraction of the time and
// memory.
constexpr size_t kYamlBytesMax = size_t{16} << 20;
// Signs of it that may begin a value. Values cost time and memory, texts hardly
// any.
constexpr int64_t kYamlSignsMax = 3'000'000;

std::string Dotted(absl::string_view path, absl::string_view key) {
  return absl::StrCat(path, path.empty() ? "" : ".", Printable(key));
}

// Whether reading `text` as YAML takes seconds and gigabytes at most.
absl::Status CheckYamlSize(absl::string_view text, absl::string_view object) {
  constexpr const char* kHint = "write it as JSON";
  if (text.size() > kYamlBytesMax) {
    return InputError(
        object,
        absl::StrCat("is no JSON, and more than the ", HumanSize(kYamlBytesMax),
                     " that are read as YAML"),
        kHint);
  }
  const auto signs = std::count_if(text.begin(), text.end(), [](char c) {
    return c == ',' || c == ':' || c == '[' || c == '{' || c == '\n';
  });
  if (signs > kYamlSignsMax) {
    return InputError(object,
                      "is no JSON, and holds more values than are read as YAML",
                      kHint);
  }
  return absl::OkStatus();
}

// Takes no notice of what a document holds.
class Unheard final : public YAML::EventHandler {
  using Mark = YAML::Mark;
  using Anchor = YAML::anchor_t;
  using Style = YAML::EmitterStyle::value;

  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, Anchor) override {}
  void OnAlias(const Mark&, Anchor) override {}
  void OnScalar(const Mark&, const std::string&, Anchor,
                const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, Anchor,
                       Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, Anchor, Style) override {}
  void OnMapEnd() override {}
};

// YAML::Load reads the first document and no further; YAML::LoadAll never ends
// on some texts. Throws as they do.
bool HoldsMoreThanOne(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Unheard events;
  return parser.HandleNextDocument(events) && parser.HandleNextDocument(events);
}

class Converter {
 public:
  explicit Converter(absl::string_view object) : object_(object) {}

  absl::StatusOr<Yaml> Convert(const YAML::Node& node, int depth,
                               const std::string& path) {
    MILLRACE_RETURN_IF_ERROR(Count(depth));
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
          MILLRACE_ASSIGN_OR_RETURN(
              Yaml value,
              Convert(item, depth + 1,
                      absl::StrCat(path, "[", out.list.size(), "]")));
          out.list.push_back(std::move(value));
        }
        return out;
      case YAML::NodeType::Map:
        return ConvertMap(node, depth, path);
    }
    return out;
  }

  // Keys of JSON are known to be different.
  absl::StatusOr<Yaml> Convert(const Json& value, int depth) {
    MILLRACE_RETURN_IF_ERROR(Count(depth));
    Yaml out;
    if (value.is_null()) {
      return out;
    }
    if (value.is_array()) {
      out.kind = Yaml::Kind::kList;
      for (const Json& item : value.get_array()) {
        MILLRACE_ASSIGN_OR_RETURN(Yaml converted, Convert(item, depth + 1));
        out.list.push_back(std::move(converted));
      }
      return out;
    }
    if (value.is_object()) {
      out.kind = Yaml::Kind::kMap;
      for (const auto& member : value.get_object()) {
        MILLRACE_ASSIGN_OR_RETURN(Yaml converted,
                                  Convert(member.value(), depth + 1));
        out.keys.emplace_back(member.key());
        out.values.push_back(std::move(converted));
      }
      return out;
    }
    out.kind = Yaml::Kind::kScalar;
    if (value.is_string()) {
      out.scalar = std::string(value.get_string());
    } else if (value.is_double()) {
      // Seventeen digits are the same double again.
      out.scalar = absl::StrFormat("%.17g", value.get_double());
    } else {
      out.scalar = WriteJson(value);
    }
    return out;
  }

 private:
  absl::Status Count(int depth) {
    if (++values_ > kValuesMax || depth > kDepthMax) {
      return InputError(object_, "is nested too deep or holds too many values",
                        absl::StrCat("nest at most ", kDepthMax,
                                     " deep, and use `count` and `repeat`"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Yaml> ConvertMap(const YAML::Node& node, int depth,
                                  const std::string& path) {
    Yaml out;
    out.kind = Yaml::Kind::kMap;
    absl::flat_hash_set<std::string> known;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        return InputError(object_,
                          absl::StrCat(path, path.empty() ? "" : ": ",
                                       "has a key that is no text"),
                          "name fields by a word each");
      }
      const std::string& key = member.first.Scalar();
      if (!known.insert(key).second) {
        return InputError(object_,
                          absl::StrCat(Dotted(path, key), ": key '",
                                       Printable(key), "' is given twice"),
                          "keep one of them");
      }
      MILLRACE_ASSIGN_OR_RETURN(
          Yaml value, Convert(member.second, depth + 1, Dotted(path, key)));
      out.keys.push_back(key);
      out.values.push_back(std::move(value));
    }
    return out;
  }

  const std::string object_;
  int64_t values_ = 0;
};

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
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (!start.empty() && start.front() == '{') {
    // What is no JSON may still be YAML, and YAML's errors name the field.
    if (const absl::StatusOr<Json> json =
            ParseJson(text, object, {.depth_max = kDepthMax});
        json.ok()) {
      return Converter(object).Convert(*json, 0);
    }
  }
  MILLRACE_RETURN_IF_ERROR(CheckYamlSize(text, object));
  if (!IsUtf8(text)) {
    return InputError(object, "is no UTF-8", "save it as UTF-8 text");
  }
  // yaml-cpp reports by exception; nothing else here throws.
  try {
    const std::string whole(text);
    if (HoldsMoreThanOne(whole)) {
      return InputError(object, "has more behind the end of its first document",
                        "keep one of them");
    }
    return Converter(object).Convert(YAML::Load(whole), 0, "");
  } catch (const std::exception& error) {
    return InputError(object,
                      absl::StrCat("is neither JSON nor YAML: ",
                                   Printable(error.what(), 200)),
                      "see docs/guide.md for an example");
  }
}

}  // namespace millrace::planner
