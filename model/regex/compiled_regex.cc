#include "model/regex/compiled_regex.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::model {
namespace {

PCRE2_SPTR Units(absl::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

absl::StatusOr<CompiledRegex> CompiledRegex::Create(absl::string_view pattern,
                                                    const Options& options,
                                                    absl::string_view object,
                                                    absl::string_view where) {
  CompiledRegex regex;
  int error = 0;
  PCRE2_SIZE error_at = 0;
  regex.code_.reset(pcre2_compile(Units(pattern), pattern.size(), options.flags,
                                  &error, &error_at, nullptr));
  if (regex.code_ == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return InputError(
        object,
        absl::StrCat(where, ": ", reinterpret_cast<const char*>(message)));
  }
  if (options.machine_code) {
    pcre2_jit_compile(regex.code_.get(), PCRE2_JIT_COMPLETE);
  }
  regex.context_.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(regex.context_.get(), options.steps_max);
  pcre2_set_heap_limit(regex.context_.get(), options.heap_kib_max);
  return regex;
}

CompiledRegex::MatchData CompiledRegex::NewMatchData() const {
  return MatchData(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
}

int CompiledRegex::Match(absl::string_view subject, size_t at, uint32_t flags,
                         const MatchData& data) const {
  return pcre2_match(code_.get(), Units(subject), subject.size(), at, flags,
                     data.get(), context_.get());
}

}  // namespace millrace::model
