#include "model/chat/jinja/text_operations.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

}  // namespace

Text Strip(const Text& text, const Text* characters, Side side) {
  absl::flat_hash_set<uint32_t> set;
  if (characters != nullptr) {
    for (int64_t at = 0; at < characters->size();
         at = NextPosition(characters->bytes(), at)) {
      set.insert(CodePointAt(characters->bytes(), at));
    }
  }
  const auto drops = [&](int64_t at) {
    const char32_t c = CodePointAt(text.bytes(), at);
    return characters == nullptr ? IsSpace(c) : set.contains(c);
  };
  int64_t begin = 0;
  int64_t end = text.size();
  while (side != Side::kRight && begin < end && drops(begin)) {
    begin = NextPosition(text.bytes(), begin);
  }
  while (side != Side::kLeft && begin < end) {
    const int64_t last = PreviousPosition(text.bytes(), end);
    if (!drops(last)) {
      break;
    }
    end = last;
  }
  return text.Sub(begin, end);
}

absl::StatusOr<Value> Replace(Runtime& runtime, const Text& text,
                              const Text& old, const Text& replacement,
                              int64_t count) {
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(text.size()));
  TextWriter writer(runtime);
  const absl::string_view bytes = text.bytes();
  int64_t plain = 0;
  for (int64_t at = 0; count != 0 && at <= text.size() && !writer.full();
       --count) {
    const size_t found = bytes.find(old.bytes(), static_cast<size_t>(at));
    if (found == absl::string_view::npos) {
      break;
    }
    MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(replacement.size() / 8));
    const auto position = static_cast<int64_t>(found);
    writer.Append(text, plain, position);
    writer.Append(replacement);
    plain = position + old.size();
    // An empty `old` stands before every character and at the end.
    at = old.empty() ? NextPosition(bytes, position) : plain;
  }
  writer.Append(text, plain, text.size());
  return Finish(runtime, writer);
}

std::vector<Piece> SplitLines(const Text& text, bool keep_ends) {
  std::vector<Piece> out;
  const absl::string_view bytes = text.bytes();
  int64_t begin = 0;
  for (int64_t at = 0; at < text.size();) {
    const char32_t c = CodePointAt(bytes, at);
    int64_t next = NextPosition(bytes, at);
    if (!IsLineEnd(c)) {
      at = next;
      continue;
    }
    if (c == '\r' && next < text.size() &&
        bytes[static_cast<size_t>(next)] == '\n') {
      ++next;
    }
    out.push_back({begin, keep_ends ? next : at});
    begin = at = next;
  }
  if (begin < text.size()) {
    out.push_back({begin, text.size()});
  }
  return out;
}

void AppendRepeated(const Text& text, int64_t count, TextWriter& writer) {
  // By doubling: one append per character would cost a hundred times as much.
  for (Text power = text; count > 0 && !writer.full(); count >>= 1) {
    if ((count & 1) != 0) {
      writer.Append(power);
    }
    if (count > 1) {
      const Text half = power;
      power.Append(half);
    }
  }
}

absl::StatusOr<Value> Justify(Runtime& runtime, const Text& text, int64_t width,
                              const Text& fill, Side free_side) {
  if (CountCodePoints(fill.bytes()) != 1) {
    return Fail("the fill must be exactly one character");
  }
  if (width > kTextBytesMax) {
    return absl::ResourceExhaustedError("a text is padded too wide");
  }
  const int64_t length = CountCodePoints(text.bytes());
  const int64_t missing = std::max<int64_t>(width - length, 0);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(missing + text.size()));
  // Python puts the odd blank of center() left where the width is odd.
  const int64_t left = free_side == Side::kRight ? 0
                       : free_side == Side::kLeft
                           ? missing
                           : missing / 2 + (missing & width & 1);
  TextWriter writer(runtime);
  AppendRepeated(fill, left, writer);
  writer.Append(text);
  AppendRepeated(fill, missing - left, writer);
  return Finish(runtime, writer);
}

absl::StatusOr<Value> ListOfPieces(Runtime& runtime, const Text& text,
                                   const std::vector<Piece>& pieces) {
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(static_cast<int64_t>(pieces.size())));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    MILLRACE_ASSIGN_OR_RETURN(Value item, runtime.heap().MakeString(text.Sub(
                                              piece.begin, piece.end)));
    items.push_back(std::move(item));
  }
  return runtime.heap().MakeList(std::move(items));
}

}  // namespace millrace::model::jinja
