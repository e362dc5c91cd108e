#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/marked_text.h"
#include "model/tokenizer/pattern.h"

namespace millrace::model {

// A token that is cut out of text as a whole.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  // neighbours must not be word characters
  bool lstrip = false;       // swallows white space in front
  bool rstrip = false;       // ... and behind
  bool normalized = false;   // looked for in normalised text
  bool special = false;
};

// Longest content of an added token: the time to search a text is its length
// times the longest content at worst.
inline constexpr size_t kAddedTokenBytesMax = 1024;

// Finds added tokens: leftmost first, at one place the longest. Immutable
// after the last Add; any thread.
class AddedTokenMatcher {
 public:
  struct Match {
    Span span;
    TokenId id = 0;
  };

  // Looks for `content` in place of the token's own; empty is ignored.
  void Add(absl::string_view content, const AddedToken& token);

  // Matches in `text`, from left to right, not overlapping. A match lies
  // entirely in text that is trusted enough for it; the white space that it
  // swallows need not.
  [[nodiscard]] std::vector<Match> FindAll(const MarkedText& text) const;

 private:
  struct Found {
    int32_t token = -1;  // index in tokens_
    size_t end = 0;
    Trust trust = Trust::kFull;  // the least of the match
  };

  [[nodiscard]] Found LongestAt(const MarkedText& text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> starts_{};
  // Trie: (node << 8 | byte) to node; node 0 is the root.
  absl::flat_hash_map<uint64_t, int32_t> edges_;
  std::vector<int32_t> token_of_node_ = {-1};
};

}  // namespace millrace::model
