#include "model/tokenizer/marked_text.h"

#include <algorithm>

#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

// Copies `raw` with U+FFFD for each maximal ill-formed part.
MarkedText Repaired(const MarkedText& raw) {
  MarkedText out = raw.EmptyLike();
  size_t good = 0;
  for (size_t at = 0; at < raw.size();) {
    const Utf8Unit unit = NextUtf8Unit(raw.text(), at);
    if (unit.kind != Utf8Kind::kCharacter) {
      out.AppendCopy(raw, good, at);
      out.AppendFrom(raw, at, at + unit.bytes, kReplacementCharacter);
      good = at + unit.bytes;
    }
    at += unit.bytes;
  }
  out.AppendCopy(raw, good, raw.size());
  return out;
}

}  // namespace

Trust TrustOf(AddedTokenMode mode) {
  switch (mode) {
    case AddedTokenMode::kPlain:
      return Trust::kPlain;
    case AddedTokenMode::kParseSpecial:
      return Trust::kFull;
    case AddedTokenMode::kNone:
      return Trust::kNone;
  }
  return Trust::kNone;
}

MarkedText MarkedText::From(absl::string_view bytes, AddedTokenMode mode) {
  MarkedText raw(TrustOf(mode));
  raw.Append(bytes, TrustOf(mode));
  return IsWellFormed(bytes) ? raw : Repaired(raw);
}

MarkedText MarkedText::Join(absl::Span<const TextSegment> segments) {
  MarkedText raw(segments.empty() ? Trust::kNone
                                  : TrustOf(segments.front().mode));
  raw.mixed_ = std::any_of(
      segments.begin(), segments.end(),
      [&](const TextSegment& s) { return TrustOf(s.mode) != raw.trust_; });
  for (const TextSegment& segment : segments) {
    raw.Append(segment.text, TrustOf(segment.mode));
  }
  return IsWellFormed(raw.text_) ? raw : Repaired(raw);
}

MarkedText MarkedText::EmptyLike() const {
  MarkedText out(trust_);
  out.mixed_ = mixed_;
  return out;
}

MarkedText MarkedText::Sub(size_t begin, size_t end) const {
  MarkedText out = EmptyLike();
  out.AppendCopy(*this, begin, end);
  return out;
}

void MarkedText::AppendCopy(const MarkedText& source, size_t begin,
                            size_t end) {
  text_.append(source.text_, begin, end - begin);
  if (mixed_) {
    marks_.append(source.marks_, begin, end - begin);
  }
}

void MarkedText::AppendFrom(const MarkedText& source, size_t begin, size_t end,
                            absl::string_view replacement) {
  text_.append(replacement.data(), replacement.size());
  if (mixed_) {
    const char least = *std::min_element(
        source.marks_.begin() + static_cast<std::ptrdiff_t>(begin),
        source.marks_.begin() + static_cast<std::ptrdiff_t>(end));
    marks_.append(replacement.size(), least);
  }
}

void MarkedText::Append(absl::string_view bytes, Trust trust) {
  text_.append(bytes.data(), bytes.size());
  if (mixed_) {
    marks_.append(bytes.size(), static_cast<char>(trust));
  }
}

}  // namespace millrace::model
