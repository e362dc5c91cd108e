#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::model::jinja {

enum class TokenType {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,    // escapes resolved
  kInteger,   // as written
  kFloat,     // as written
  kOperator,  // its sign
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;
  int line = 1;
};

// A template of more bytes than this is refused. The longest real one has 30
// KiB.
inline constexpr int64_t kTemplateBytesMax = int64_t{4} << 20;

// Cuts a template into tokens, blanks around tags already taken off as
// trim_blocks, lstrip_blocks and the signs `-` and `+` say. The last token is
// kEnd. Errors are kInvalidArgument and begin with "line N: ".
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

// "line N: what", kInvalidArgument.
absl::Status SyntaxError(int line, absl::string_view what);

}  // namespace millrace::model::jinja
