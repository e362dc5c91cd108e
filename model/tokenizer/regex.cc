#include "model/tokenizer/regex.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/regex/compiled_regex.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

// Steps of one match. A run of blanks costs a step each, so this leaves room
// for millions of them and still ends within about a second.
constexpr uint32_t kMatchStepsMax = 20'000'000;
constexpr uint32_t kMatchHeapKibMax = 256 * 1024;
// Longest pattern that is compiled; known ones have some hundred bytes.
constexpr size_t kRegexBytesMax = 16384;

// White_Space without U+180E, which PCRE2's \s has.
constexpr absl::string_view kSpaceClass =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029})"
    R"(\x{202F}\x{205F}\x{3000})";

class Compiled final : public Pattern {
 public:
  Compiled(CompiledRegex code, std::string object)
      : code_(std::move(code)), object_(std::move(object)) {}

  absl::Status FindAll(absl::string_view text, Span range,
                       std::vector<Span>* out) const override {
    const absl::string_view part =
        text.substr(range.begin, range.end - range.begin);
    const CompiledRegex::MatchData data = code_.NewMatchData();
    for (size_t at = 0; at < part.size();) {
      const int found = MatchFrom(part, at, data);
      if (found == PCRE2_ERROR_NOMATCH) {
        break;
      }
      if (found < 0) {
        return MakeError(absl::StatusCode::kResourceExhausted, object_,
                         absl::StrCat("the pre-tokenizer's pattern took too "
                                      "many steps on this text (PCRE2 error ",
                                      found, ")"),
                         "send shorter runs of the same characters");
      }
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
      const size_t begin = ends[0];
      const size_t end = ends[1];
      if (end > begin && begin >= at) {
        out->push_back({range.begin + begin, range.begin + end});
        at = end;
      } else {
        at = std::max(at, begin);
        at += at < part.size() ? CodePointAt(part, at).bytes : 1;
      }
    }
    return absl::OkStatus();
  }

 private:
  // The text is known to be well-formed: checking it in each call would make
  // the whole quadratic. The compiled code falls back to the interpreter where
  // its small stack does not do.
  int MatchFrom(absl::string_view part, size_t at,
                const CompiledRegex::MatchData& data) const {
    const int found = code_.Match(part, at, PCRE2_NO_UTF_CHECK, data);
    return found == PCRE2_ERROR_JIT_STACKLIMIT
               ? code_.Match(part, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data)
               : found;
  }

  const CompiledRegex code_;
  const std::string object_;
};

}  // namespace

std::string RewriteForPcre2(absl::string_view regex) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    const absl::string_view rest = regex.substr(i);
    if (absl::StartsWith(rest, "\\p{Han}")) {
      absl::StrAppend(&out, "\\p{sc:Han}");
      i += 6;
    } else if (absl::StartsWith(rest, "\\s")) {
      absl::StrAppend(&out, in_class ? "" : "[", kSpaceClass,
                      in_class ? "" : "]");
      ++i;
    } else if (absl::StartsWith(rest, "\\S") && !in_class) {
      absl::StrAppend(&out, "[^", kSpaceClass, "]");
      ++i;
    } else if (rest[0] == '\\' && rest.size() > 1) {
      absl::StrAppend(&out, rest.substr(0, 2));
      ++i;
    } else {
      in_class = in_class ? rest[0] != ']' : rest[0] == '[';
      out.push_back(rest[0]);
    }
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Pattern>> Pcre2Pattern(
    absl::string_view regex, absl::string_view object) {
  const std::string where =
      absl::StrCat("pattern '", Printable(regex, 60), "'");
  if (regex.size() > kRegexBytesMax) {
    return InputError(object, absl::StrCat(where, " is longer than ",
                                           kRegexBytesMax, " bytes"));
  }
  if (absl::StrContains(regex, "&&")) {
    return InputError(object,
                      absl::StrCat(where,
                                   " intersects classes (&&), which is "
                                   "supported for known patterns only"));
  }
  const std::string rewritten = RewriteForPcre2(regex);
  MILLRACE_ASSIGN_OR_RETURN(
      CompiledRegex code,
      CompiledRegex::Create(
          rewritten,
          {.flags = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
           .steps_max = kMatchStepsMax,
           .heap_kib_max = kMatchHeapKibMax,
           .machine_code = true},
          object, where));
  return std::make_unique<Compiled>(std::move(code), std::string(object));
}

}  // namespace millrace::model
