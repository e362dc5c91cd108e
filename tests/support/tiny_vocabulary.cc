#include "tests/support/tiny_vocabulary.h"

#include <algorithm>
#include <set>

namespace millrace::testing {
namespace {

constexpr int64_t kNumSpecial = 4;

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) {
    return std::string(1, static_cast<char>(code_point));
  }
  return {static_cast<char>(0xC0 | code_point >> 6),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

bool IsPlain(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

// The characters that stand for the bytes, in the order of the bytes.
std::vector<std::string> ByteAlphabet() {
  std::vector<std::string> out;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    out.push_back(Utf8(IsPlain(byte) ? byte : next));
    next += IsPlain(byte) ? 0 : 1;
  }
  return out;
}

// Adds merges, each of tokens that are there already, until there are enough.
class MergeMaker {
 public:
  MergeMaker(TinyVocabulary& out, size_t tokens_wanted)
      : out_(out),
        wanted_(tokens_wanted),
        seen_(out.tokens.begin(), out.tokens.end()) {}

  void Make() {
    const std::string space = Utf8(0x120);
    for (const char* pair :
         {"th", "he", "in", "er", "an", "re", "on", "at", "en", "nd",
          "ti", "es", "or", "te", "of", "ed", "is", "it", "al", "ar"}) {
      Add(std::string(1, pair[0]), std::string(1, pair[1]));
    }
    Add("th", "e");
    for (char a = 'a'; a <= 'z'; ++a) {
      Add(space, std::string(1, a));
    }
    Add(space + "t", "he");
    const std::vector<std::string> letters = Letters();
    AddProduct(letters, letters);
    std::vector<std::string> pairs;
    for (const std::string& a : letters) {
      for (const std::string& b : letters) {
        pairs.push_back(a + b);
      }
    }
    AddProduct(pairs, letters);
  }

 private:
  static std::vector<std::string> Letters() {
    std::vector<std::string> out;
    for (char a = 'a'; a <= 'z'; ++a) {
      out.emplace_back(1, a);
    }
    return out;
  }
  void AddProduct(const std::vector<std::string>& left,
                  const std::vector<std::string>& right) {
    for (const std::string& a : left) {
      for (const std::string& b : right) {
        Add(a, b);
      }
    }
  }
  void Add(const std::string& left, const std::string& right) {
    if (out_.tokens.size() >= wanted_ || !seen_.insert(left + right).second) {
      return;
    }
    out_.tokens.push_back(left + right);
    out_.merges.push_back(left + " " + right);
  }

  TinyVocabulary& out_;
  const size_t wanted_;
  std::set<std::string> seen_;
};

}  // namespace

const char kTinyChatTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content "
    "}}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
    "%}<|im_start|>assistant\n{% endif %}";

TinyVocabulary MakeTinyVocabulary(int64_t size) {
  TinyVocabulary out;
  out.tokens = ByteAlphabet();
  MergeMaker(out, static_cast<size_t>(size - kNumSpecial)).Make();
  const int32_t first = static_cast<int32_t>(out.tokens.size());
  for (const char* special :
       {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"}) {
    out.tokens.emplace_back(special);
  }
  out.end_of_text = first;
  out.im_start = first + 1;
  out.im_end = first + 2;
  out.pad = first + 3;
  return out;
}

std::string JsonQuoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

std::string TinyTokenizerJson(const TinyVocabulary& vocabulary) {
  const size_t plain = vocabulary.tokens.size() - kNumSpecial;
  std::string added;
  for (size_t i = plain; i < vocabulary.tokens.size(); ++i) {
    added += (added.empty() ? "" : ",\n  ");
    added += "{\"id\": " + std::to_string(i) +
             ", \"content\": " + JsonQuoted(vocabulary.tokens[i]) +
             ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
             "\"normalized\": false, \"special\": true}";
  }
  std::string vocab;
  for (size_t i = 0; i < plain; ++i) {
    vocab += (i == 0 ? "" : ", ") + JsonQuoted(vocabulary.tokens[i]) + ": " +
             std::to_string(i);
  }
  std::string merges;
  for (const std::string& merge : vocabulary.merges) {
    merges += (merges.empty() ? "" : ", ") + JsonQuoted(merge);
  }
  return "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
         " \"added_tokens\": [" +
         added +
         "],\n \"normalizer\": null,\n"
         " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
         "false, \"trim_offsets\": true, \"use_regex\": true},\n"
         " \"post_processor\": null,\n"
         " \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
         "\"trim_offsets\": true, \"use_regex\": true},\n"
         " \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": "
         "null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": "
         "null, \"fuse_unk\": false, \"byte_fallback\": false, "
         "\"ignore_merges\": false,\n  \"vocab\": {" +
         vocab + "},\n  \"merges\": [" + merges + "]}}\n";
}

}  // namespace millrace::testing
