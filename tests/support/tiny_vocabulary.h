#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::testing {

// A byte-level BPE vocabulary of any size from 260: 256 byte characters, made
// up merges, and four special tokens at the end.
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;  // "left right"
  int32_t end_of_text = 0;          // <|endoftext|>
  int32_t im_start = 0;
  int32_t im_end = 0;
  int32_t pad = 0;
};

// `size` from 260 to 18,000.
TinyVocabulary MakeTinyVocabulary(int64_t size);

// tokenizer.json of it, pattern gpt-2.
std::string TinyTokenizerJson(const TinyVocabulary& vocabulary);

// ChatML.
extern const char kTinyChatTemplate[];

// `text` as a JSON string with its quotes.
std::string JsonQuoted(const std::string& text);

}  // namespace millrace::testing
