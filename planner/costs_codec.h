#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/costs.h"
#include "planner/yaml_reader.h"

namespace millrace::planner {

// Reads a cost file, JSON or YAML, with `repeat` and nested groups written out.
// Unknown fields, keys given twice, values out of range, more than kLayersMax
// layers and sums that no planner could hold are InputErrors that name `object`
// and the field.
absl::StatusOr<ModelCosts> ParseCosts(absl::string_view text,
                                      absl::string_view object);

// The same of a part of a larger file; `path`: its dotted key there.
absl::StatusOr<ModelCosts> ReadCosts(const Yaml& document,
                                     absl::string_view object,
                                     absl::string_view path);

}  // namespace millrace::planner
