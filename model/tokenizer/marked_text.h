#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// How far a byte of text is trusted, least first. An added token is matched
// only where every byte of it is trusted enough.
enum class Trust : uint8_t {
  kNone,   // no added token
  kPlain,  // added tokens that are not special
  kFull,   // all
};

Trust TrustOf(AddedTokenMode mode);

// Well-formed UTF-8 in which every byte knows its trust, through rewriting
// too: what replaces a range has the least trust of that range.
// A value; one thread.
class MarkedText {
 public:
  // All of one trust and still empty.
  explicit MarkedText(Trust trust) : trust_(trust) {}

  // Ill-formed parts become U+FFFD, also where segments meet.
  static MarkedText From(absl::string_view bytes, AddedTokenMode mode);
  static MarkedText Join(absl::Span<const TextSegment> segments);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] size_t size() const { return text_.size(); }
  [[nodiscard]] Trust TrustAt(size_t at) const {
    return marks_.empty() ? trust_ : static_cast<Trust>(marks_[at]);
  }
  // No byte is trusted.
  [[nodiscard]] bool Untrusted() const {
    return marks_.empty() && trust_ == Trust::kNone;
  }

  // An empty text that can take ranges of this one by AppendFrom.
  [[nodiscard]] MarkedText EmptyLike() const;
  // The range [begin, end) by itself.
  [[nodiscard]] MarkedText Sub(size_t begin, size_t end) const;
  // Appends [begin, end) of `source` unchanged.
  void AppendCopy(const MarkedText& source, size_t begin, size_t end);
  // Appends `replacement` for [begin, end) of `source`, begin < end.
  void AppendFrom(const MarkedText& source, size_t begin, size_t end,
                  absl::string_view replacement);
  // Appends bytes of this trust.
  void Append(absl::string_view bytes, Trust trust);

  // Gives up the text.
  std::string Take() && { return std::move(text_); }

 private:
  std::string text_;
  Trust trust_;
  bool mixed_ = false;
  std::string marks_;  // one Trust a byte where mixed_, else empty
};

}  // namespace millrace::model
