#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// What a tokenizer did with the lines of a reference file: texts with the ids
// that another library gave them, and ids with their text.
struct RowResults {
  int passed = 0;
  int newer = 0;  // failed, with characters newer than Unicode 14
  std::vector<std::string> failures;  // one line each
};

// Runs each line of the JSON lines file at `path`; also decodes the ids piece
// by piece, which must give the same text.
RowResults RunReferenceRows(const Tokenizer& tokenizer,
                            const std::string& path);

}  // namespace millrace::model
