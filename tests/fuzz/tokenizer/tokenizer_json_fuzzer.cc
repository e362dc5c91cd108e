// A tokenizer.json of any content is refused or works on any text: no crash,
// no access out of bounds, and streaming equals decoding. The input is the
// file, a NUL byte and the text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {
namespace {

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void Exercise(const Tokenizer& tokenizer, absl::string_view text) {
  for (const AddedTokenMode mode :
       {AddedTokenMode::kPlain, AddedTokenMode::kParseSpecial,
        AddedTokenMode::kNone}) {
    const auto ids = tokenizer.Encode(text, mode, true);
    if (!ids.ok()) {
      continue;
    }
    const auto decoded = tokenizer.Decode(*ids, false);
    Require(decoded.ok());
    StreamingDetokenizer stream(tokenizer, false);
    std::string joined;
    for (const TokenId id : *ids) {
      Require(id >= 0 && id < tokenizer.vocab_size());
      joined += stream.Append(id);
      (void)tokenizer.TokenBytes(id);
    }
    joined += stream.Finish();
    Require(joined == *decoded);
  }
}

}  // namespace
}  // namespace millrace::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using millrace::model::Tokenizer;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const auto tokenizer =
      Tokenizer::FromTokenizerJson(input.substr(0, cut), "fuzz");
  if (tokenizer.ok()) {
    millrace::model::Exercise(**tokenizer, cut == absl::string_view::npos
                                               ? "text"
                                               : input.substr(cut + 1));
  }
  return 0;
}
