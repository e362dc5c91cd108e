#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/cluster.h"
#include "planner/yaml_reader.h"

namespace millrace::planner {

// Reads a cluster file, JSON or YAML. Unknown fields, keys given twice, values
// out of range and names that are no node are InputErrors that name `object`
// and the field.
absl::StatusOr<Cluster> ParseCluster(absl::string_view text,
                                     absl::string_view object);

// The same of a part of a larger file; `path`: its dotted key there.
absl::StatusOr<Cluster> ReadCluster(const Yaml& document,
                                    absl::string_view object,
                                    absl::string_view path);

}  // namespace millrace::planner
