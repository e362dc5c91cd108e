#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/checkpoint.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// The tokenizer at `path`: a tokenizer.json, a GGUF file (of which only the
// metadata need be there), or a folder with a tokenizer.json. Files are told
// apart by content. SentencePiece and tiktoken files are an InputError that
// names them.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path);

// The tokenizer of a checkpoint; null where it has none.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(
    const Checkpoint& checkpoint);

}  // namespace millrace::model
