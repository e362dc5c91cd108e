#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/chat/jinja/runtime.h"
#include "model/chat/jinja/text.h"

namespace millrace::model::jinja {

// Operations of Python's str that filters and methods share. All keep origins.

enum class Side { kBoth, kLeft, kRight };

// Without the characters of `characters` at the ends; null: white space.
Text Strip(const Text& text, const Text* characters, Side side);

// `text` with `count` (negative: all) occurrences of `old` as `replacement`.
absl::StatusOr<Value> Replace(Runtime& runtime, const Text& text,
                              const Text& old, const Text& replacement,
                              int64_t count);

// Byte ranges of `text`.
struct Piece {
  int64_t begin;
  int64_t end;
};

// str.splitlines; the line ends belong to a piece only with `keep_ends`.
std::vector<Piece> SplitLines(const Text& text, bool keep_ends);

// `text` so many times; the caller has bounded the result.
void AppendRepeated(const Text& text, int64_t count, TextWriter& writer);

// `text` in the middle (or at one side) of `width` characters.
absl::StatusOr<Value> Justify(Runtime& runtime, const Text& text, int64_t width,
                              const Text& fill, Side free_side);

// A list of the given pieces of `text`.
absl::StatusOr<Value> ListOfPieces(Runtime& runtime, const Text& text,
                                   const std::vector<Piece>& pieces);

}  // namespace millrace::model::jinja
