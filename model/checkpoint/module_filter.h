#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::model {

// How closely a pattern names a module; the larger decides where rules differ.
enum class ModuleMatch { kNone, kClass, kRegex, kName };

// The `targets` or `ignore` list of a quantisation config: names of modules,
// `re:` and a regular expression that must match from the start of the name,
// or `Linear`, the class of every weight matrix but the embedding. Const; one
// thread at a time.
class ModuleFilter {
 public:
  ModuleFilter();
  ModuleFilter(ModuleFilter&& other) noexcept;
  ModuleFilter& operator=(ModuleFilter&& other) noexcept;
  ~ModuleFilter();

  // InputError naming `object` for a regular expression that cannot be read,
  // and for lists beyond what a config may hold.
  [[nodiscard]] absl::Status Add(absl::string_view pattern,
                                 absl::string_view object);

  // InputError where a regular expression takes too many steps on the name.
  [[nodiscard]] absl::StatusOr<ModuleMatch> Match(
      absl::string_view module) const;

 private:
  class Regex;

  bool linear_ = false;
  absl::flat_hash_set<std::string> names_;
  std::vector<std::unique_ptr<Regex>> regexes_;
};

// Whether the class Linear has this module: not embed_tokens.
[[nodiscard]] bool IsLinear(absl::string_view module);

}  // namespace millrace::model
