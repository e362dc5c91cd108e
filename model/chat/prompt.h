#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// Gives `input`, an object, what templates expect beside its own variables:
// NormaliseMessages, `tools` and `documents` null where they are missing, and
// the texts of the model's tokens as bos_token and eos_token. Empty texts are
// left out.
void CompleteInput(absl::string_view bos_text, absl::string_view eos_text,
                   Json& input);

// The text of all segments.
std::string JoinSegments(absl::Span<const TextSegment> segments);

// Renders `input` and tokenizes the result. Text that stems from the input
// matches no added token, unless `parse_special`, which tokenizes the joined
// text as transformers does. A template writes its own BOS: none is added.
// Errors are those of Render and of the tokenizer.
absl::StatusOr<std::vector<TokenId>> BuildPrompt(
    const Tokenizer& tokenizer, const ChatTemplate& chat_template,
    const Json& input, absl::Time now, bool parse_special);

// For a model without a template: an InputError that names `object` and --raw.
absl::Status NoChatTemplate(absl::string_view object);

}  // namespace millrace::model
