#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// Four times the largest vocabulary known (262,144); keeps a damaged id from
// becoming a table of gigabytes.
inline constexpr int64_t kVocabularyMax = int64_t{1} << 20;

// Strings of tokens by id and ids by string. Ids may have gaps; of equal
// strings the last one is found. Immutable; any thread.
class Vocabulary {
 public:
  // `object` names the source in errors. Ids from 0 to kVocabularyMax - 1,
  // none twice; strings are well-formed UTF-8.
  static absl::StatusOr<std::unique_ptr<Vocabulary>> Create(
      std::vector<std::pair<std::string, TokenId>> entries,
      absl::string_view object);

  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Null where the id has no token.
  [[nodiscard]] const std::string* Find(TokenId id) const {
    return id >= 0 && id < size() && present_[static_cast<size_t>(id)]
               ? &tokens_[static_cast<size_t>(id)]
               : nullptr;
  }
  // -1 where there is none.
  [[nodiscard]] TokenId Id(absl::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  // One more than the highest id.
  [[nodiscard]] int64_t size() const {
    return static_cast<int64_t>(tokens_.size());
  }

 private:
  Vocabulary() = default;

  std::vector<std::string> tokens_;
  std::vector<bool> present_;
  absl::flat_hash_map<absl::string_view, TokenId> ids_;  // keys in tokens_
};

}  // namespace millrace::model
