#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf_file.h"
#include "model/tokenizer/gguf_vocabulary.h"

namespace millrace::model {

// Whether the file says anything about a vocabulary.
[[nodiscard]] bool HasGgufVocabulary(const GgufFile& file);

// The tokenizer.ggml.* keys, as checked as gguf_vocabulary.h says. InputError
// naming file and key.
absl::StatusOr<GgufVocabulary> GgufVocabularyOf(const GgufFile& file);

// The same from a path; the tensors of the file are not looked at and may be
// missing.
absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const std::string& path);

}  // namespace millrace::model
