#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::model {

// A regular expression of PCRE2 with bounds on what one match may take, since
// expressions come from files. Immutable; any thread, each with MatchData of
// its own.
class CompiledRegex {
 public:
  struct Options {
    uint32_t flags = 0;  // of pcre2_compile
    uint32_t steps_max = 0;
    uint32_t heap_kib_max = 0;
    bool machine_code = false;  // where the machine cannot, it is interpreted
  };
  struct FreeMatchData {
    void operator()(pcre2_match_data* data) const {
      pcre2_match_data_free(data);
    }
  };
  using MatchData = std::unique_ptr<pcre2_match_data, FreeMatchData>;

  // InputError about `object` that begins with `where`.
  static absl::StatusOr<CompiledRegex> Create(absl::string_view pattern,
                                              const Options& options,
                                              absl::string_view object,
                                              absl::string_view where);

  // Room for the places of one match.
  [[nodiscard]] MatchData NewMatchData() const;

  // As pcre2_match: below 0 for no match, or a bound that was met.
  [[nodiscard]] int Match(absl::string_view subject, size_t at, uint32_t flags,
                          const MatchData& data) const;

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeContext {
    void operator()(pcre2_match_context* context) const {
      pcre2_match_context_free(context);
    }
  };

  CompiledRegex() = default;

  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
};

}  // namespace millrace::model
