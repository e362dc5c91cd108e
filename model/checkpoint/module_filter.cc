#include "model/checkpoint/module_filter.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/regex/compiled_regex.h"

namespace millrace::model {
namespace {

// Published lists have fewer than ten expressions of below 100 bytes.
constexpr size_t kRegexesMax = 64;
constexpr size_t kRegexBytesMax = 1024;
// Steps of one match: a hundred times what three `.*` take on a module's name,
// and few enough that a hostile list ends soon on the names of a model.
constexpr uint32_t kMatchStepsMax = 100'000;
constexpr uint32_t kMatchHeapKibMax = 1024;

}  // namespace

class ModuleFilter::Regex {
 public:
  static absl::StatusOr<std::unique_ptr<Regex>> Create(
      absl::string_view pattern, absl::string_view object) {
    const std::string where =
        absl::StrCat("pattern 're:", Printable(pattern, 60), "'");
    if (pattern.size() > kRegexBytesMax) {
      return InputError(object, absl::StrCat(where, " is longer than ",
                                             kRegexBytesMax, " bytes"));
    }
    MILLRACE_ASSIGN_OR_RETURN(
        CompiledRegex code,
        CompiledRegex::Create(
            pattern,
            {.flags = PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C,
             .steps_max = kMatchStepsMax,
             .heap_kib_max = kMatchHeapKibMax},
            object, where));
    return std::unique_ptr<Regex>(
        new Regex(std::move(code), std::string(object), where));
  }

  [[nodiscard]] absl::StatusOr<bool> Matches(absl::string_view module) const {
    const int found = code_.Match(module, 0, 0, code_.NewMatchData());
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      return InputError(
          object_,
          absl::StrCat(where_, " cannot be applied to '", Printable(module),
                       "' (PCRE2 error ", found, ")"),
          "write it with fewer repetitions");
    }
    return found >= 0;
  }

 private:
  Regex(CompiledRegex code, std::string object, std::string where)
      : code_(std::move(code)),
        object_(std::move(object)),
        where_(std::move(where)) {}

  const CompiledRegex code_;
  const std::string object_;
  const std::string where_;
};

ModuleFilter::ModuleFilter() = default;
ModuleFilter::ModuleFilter(ModuleFilter&& other) noexcept = default;
ModuleFilter& ModuleFilter::operator=(ModuleFilter&& other) noexcept = default;
ModuleFilter::~ModuleFilter() = default;

absl::Status ModuleFilter::Add(absl::string_view pattern,
                               absl::string_view object) {
  if (pattern == "Linear") {
    linear_ = true;
    return absl::OkStatus();
  }
  if (!absl::ConsumePrefix(&pattern, "re:")) {
    names_.emplace(pattern);
    return absl::OkStatus();
  }
  if (regexes_.size() == kRegexesMax) {
    return InputError(object, absl::StrCat("holds more than ", kRegexesMax,
                                           " regular expressions"));
  }
  auto regex = Regex::Create(pattern, object);
  if (!regex.ok()) {
    return regex.status();
  }
  regexes_.push_back(*std::move(regex));
  return absl::OkStatus();
}

absl::StatusOr<ModuleMatch> ModuleFilter::Match(
    absl::string_view module) const {
  if (names_.contains(module)) {
    return ModuleMatch::kName;
  }
  for (const auto& regex : regexes_) {
    const absl::StatusOr<bool> matches = regex->Matches(module);
    if (!matches.ok()) {
      return matches.status();
    }
    if (*matches) {
      return ModuleMatch::kRegex;
    }
  }
  return linear_ && IsLinear(module) ? ModuleMatch::kClass : ModuleMatch::kNone;
}

bool IsLinear(absl::string_view module) {
  return !absl::EndsWith(module, "embed_tokens");
}

}  // namespace millrace::model
