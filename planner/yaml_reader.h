#pragma once

#include <string>
#include <vector>

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

}  // namespace millrace::planner
