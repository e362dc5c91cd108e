#include "model/tokenizer/vocabulary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {

absl::StatusOr<std::unique_ptr<Vocabulary>> Vocabulary::Create(
    std::vector<std::pair<std::string, TokenId>> entries,
    absl::string_view object) {
  TokenId highest = -1;
  for (const auto& [token, id] : entries) {
    if (id < 0 || id >= kVocabularyMax) {
      return InputError(
          object, absl::StrCat("token '", Printable(token), "' has id ", id,
                               ", which is out of range"));
    }
    if (!IsWellFormed(token)) {
      return InputError(object,
                        absl::StrCat("token ", id, " is no valid UTF-8"));
    }
    highest = std::max(highest, id);
  }
  auto out = std::unique_ptr<Vocabulary>(new Vocabulary());
  out->tokens_.resize(static_cast<size_t>(highest) + 1);
  out->present_.resize(out->tokens_.size());
  out->ids_.reserve(entries.size());
  for (auto& [token, id] : entries) {
    const auto index = static_cast<size_t>(id);
    if (out->present_[index]) {
      return InputError(
          object, absl::StrCat("id ", id, " is given to '",
                               Printable(out->tokens_[index]), "' and to '",
                               Printable(token), "'"));
    }
    out->tokens_[index] = std::move(token);
    out->present_[index] = true;
    out->ids_[out->tokens_[index]] = id;
  }
  return out;
}

}  // namespace millrace::model
