#include "model/tokenizer/unicode_form.h"

#include <algorithm>
#include <vector>

#include "model/tokenizer/utf8.h"
#include "unicode/normalizer2.h"
#include "unicode/uchar.h"
#include "unicode/unistr.h"

namespace millrace::model {
namespace {

// A code point of the decomposed text and the range of the source it is from.
struct Piece {
  UChar32 value = 0;
  uint8_t combining = 0;  // canonical combining class
  size_t begin = 0;
  size_t end = 0;
};

struct Tables {
  const icu::Normalizer2* decompose;
  const icu::Normalizer2* compose;  // null for the decomposed forms
  UProperty quick_check;
};

Tables TablesOf(UnicodeForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* canonical = icu::Normalizer2::getNFCInstance(error);
  const icu::Normalizer2* compatible = icu::Normalizer2::getNFKCInstance(error);
  switch (form) {
    case UnicodeForm::kNfc:
      return {canonical, canonical, UCHAR_NFC_QUICK_CHECK};
    case UnicodeForm::kNfd:
      return {canonical, nullptr, UCHAR_NFD_QUICK_CHECK};
    case UnicodeForm::kNfkc:
      return {compatible, canonical, UCHAR_NFKC_QUICK_CHECK};
    case UnicodeForm::kNfkd:
      return {compatible, nullptr, UCHAR_NFKD_QUICK_CHECK};
  }
  return {canonical, canonical, UCHAR_NFC_QUICK_CHECK};
}

// Certainly in the form already.
bool QuickCheck(absl::string_view text, UProperty property) {
  uint8_t last = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    at += c.bytes;
    if (c.value < 0x80) {
      last = 0;
      continue;
    }
    const auto value = static_cast<UChar32>(c.value);
    const uint8_t combining = u_getCombiningClass(value);
    if ((combining != 0 && combining < last) ||
        u_getIntPropertyValue(value, property) != UNORM_YES) {
      return false;
    }
    last = combining;
  }
  return true;
}

std::vector<Piece> Decomposed(absl::string_view text, const Tables& tables) {
  std::vector<Piece> out;
  out.reserve(text.size());
  icu::UnicodeString parts;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    const auto value = static_cast<UChar32>(c.value);
    const size_t end = at + c.bytes;
    if (c.value >= 0x80 &&
        tables.decompose->getDecomposition(value, parts) != 0) {
      for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
        const UChar32 part = parts.char32At(i);
        out.push_back({part, u_getCombiningClass(part), at, end});
      }
    } else {
      out.push_back({value, u_getCombiningClass(value), at, end});
    }
    at = end;
  }
  return out;
}

void SortMarks(std::vector<Piece>* pieces) {
  const auto starter = [](const Piece& p) { return p.combining == 0; };
  auto at = pieces->begin();
  while (at != pieces->end()) {
    const auto begin = std::find_if_not(at, pieces->end(), starter);
    at = std::find_if(begin, pieces->end(), starter);
    std::stable_sort(begin, at, [](const Piece& a, const Piece& b) {
      return a.combining < b.combining;
    });
  }
}

void Compose(const icu::Normalizer2& tables, std::vector<Piece>* pieces) {
  size_t size = 0;
  Piece* starter = nullptr;
  uint8_t last = 0;  // class of what stands last behind the starter; 0: nothing
  for (const Piece& piece : *pieces) {
    if (starter != nullptr && (last == 0 || last < piece.combining)) {
      const UChar32 composed = tables.composePair(starter->value, piece.value);
      if (composed >= 0) {
        starter->value = composed;
        starter->begin = std::min(starter->begin, piece.begin);
        starter->end = std::max(starter->end, piece.end);
        continue;
      }
    }
    Piece& kept = (*pieces)[size++];
    kept = piece;
    last = piece.combining;
    if (piece.combining == 0) {
      starter = &kept;
    }
  }
  pieces->resize(size);
}

}  // namespace

MarkedText InUnicodeForm(const MarkedText& text, UnicodeForm form) {
  const Tables tables = TablesOf(form);
  if (QuickCheck(text.text(), tables.quick_check)) {
    return text;
  }
  std::vector<Piece> pieces = Decomposed(text.text(), tables);
  SortMarks(&pieces);
  if (tables.compose != nullptr) {
    Compose(*tables.compose, &pieces);
  }
  MarkedText out = text.EmptyLike();
  std::string bytes;
  for (const Piece& piece : pieces) {
    bytes.clear();
    AppendUtf8(static_cast<char32_t>(piece.value), &bytes);
    out.AppendFrom(text, piece.begin, piece.end, bytes);
  }
  return out;
}

}  // namespace millrace::model
