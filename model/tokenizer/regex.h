#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pattern.h"

namespace millrace::model {

// A regex of a tokenizer file, matched by PCRE2 under limits. Spelling of
// Oniguruma that PCRE2 reads differently is rewritten: \s is White_Space,
// \p{Han} the script. Intersections (&&) are an InputError.
absl::StatusOr<std::unique_ptr<Pattern>> Pcre2Pattern(absl::string_view regex,
                                                      absl::string_view object);

// The same regex as PCRE2 is to see it; for tests.
std::string RewriteForPcre2(absl::string_view regex);

}  // namespace millrace::model
