#include "model/tokenizer/added_tokens.h"

#include <algorithm>

#include "model/tokenizer/char_class.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

bool WordEndsAt(absl::string_view text, size_t end) {
  return end > 0 &&
         IsWordCharacter(CodePointAt(text, PreviousCodePoint(text, end)).value);
}

bool WordStartsAt(absl::string_view text, size_t at) {
  return at < text.size() && IsWordCharacter(CodePointAt(text, at).value);
}

// Start of the white space that ends at `end`, not before `low`.
size_t SpaceBefore(absl::string_view text, size_t end, size_t low) {
  while (end > low) {
    const size_t previous = PreviousCodePoint(text, end);
    if (previous < low ||
        (ClassOf(CodePointAt(text, previous).value) & kSpace) == 0) {
      break;
    }
    end = previous;
  }
  return end;
}

size_t SpaceBehind(absl::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = CodePointAt(text, at);
    if ((ClassOf(c.value) & kSpace) == 0) {
      break;
    }
    at += c.bytes;
  }
  return at;
}

uint64_t EdgeKey(int32_t node, char byte) {
  return (static_cast<uint64_t>(node) << 8) | static_cast<unsigned char>(byte);
}

}  // namespace

void AddedTokenMatcher::Add(absl::string_view content,
                            const AddedToken& token) {
  if (content.empty()) {
    return;
  }
  starts_[static_cast<unsigned char>(content[0])] = true;
  int32_t node = 0;
  for (const char byte : content) {
    const auto [edge, inserted] = edges_.try_emplace(
        EdgeKey(node, byte), static_cast<int32_t>(token_of_node_.size()));
    node = edge->second;
    if (inserted) {
      token_of_node_.push_back(-1);
    }
  }
  if (token_of_node_[static_cast<size_t>(node)] < 0) {
    token_of_node_[static_cast<size_t>(node)] =
        static_cast<int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
}

AddedTokenMatcher::Found AddedTokenMatcher::LongestAt(const MarkedText& text,
                                                      size_t at) const {
  Found longest;
  Trust trust = Trust::kFull;
  int32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    trust = std::min(trust, text.TrustAt(i));
    const auto edge = edges_.find(EdgeKey(node, text.text()[i]));
    if (trust == Trust::kNone || edge == edges_.end()) {
      break;
    }
    node = edge->second;
    if (const int32_t token = token_of_node_[static_cast<size_t>(node)];
        token >= 0) {
      longest = {token, i + 1, trust};
    }
  }
  return longest;
}

std::vector<AddedTokenMatcher::Match> AddedTokenMatcher::FindAll(
    const MarkedText& marked) const {
  std::vector<Match> out;
  if (tokens_.empty() || marked.Untrusted()) {
    return out;
  }
  const absl::string_view text = marked.text();
  size_t taken = 0;        // end of the last match
  size_t spaces_from = 0;  // [spaces_from, spaces_end) is white space
  size_t spaces_end = 0;
  for (size_t at = 0; at < text.size();) {
    if (!starts_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const Found found = LongestAt(marked, at);
    if (found.token < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found.token)];
    Span span{at, found.end};
    at = found.end;
    // A special one in plain text is left as text as a whole, and so is one
    // that is part of a word.
    if ((token.special && found.trust != Trust::kFull) ||
        (token.single_word &&
         (WordEndsAt(text, span.begin) || WordStartsAt(text, span.end)))) {
      continue;
    }
    if (span.begin < taken) {
      continue;  // swallowed by the token in front
    }
    if (token.lstrip) {
      span.begin = SpaceBefore(text, span.begin, taken);
    }
    if (token.rstrip) {
      if (span.end < spaces_from || span.end >= spaces_end) {
        spaces_from = span.end;
        spaces_end = SpaceBehind(text, span.end);
      }
      span.end = std::max(span.end, spaces_end);
    }
    out.push_back({span, token.id});
    taken = span.end;
  }
  return out;
}

}  // namespace millrace::model
