#include "model/tokenizer/gguf_pre.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/pattern_rules.h"

namespace millrace::model {
namespace {

struct Known {
  absl::string_view id;
  KnownPattern pattern;
  bool ignore_merges = false;
  bool nfc = false;
  bool add_bos = false;
  bool digits_first = false;  // isolates every \p{N} before
};

constexpr Known Llama3(absl::string_view id) {
  return {.id = id,
          .pattern = KnownPattern::kLlama3,
          .ignore_merges = true,
          .add_bos = true};
}

constexpr Known Digits(absl::string_view id) {
  return {.id = id, .pattern = KnownPattern::kGpt2, .digits_first = true};
}

constexpr Known Qwen2(absl::string_view id, bool nfc) {
  return {.id = id, .pattern = KnownPattern::kQwen2, .nfc = nfc};
}

constexpr Known Gpt4o(absl::string_view id) {
  return {.id = id, .pattern = KnownPattern::kGpt4o, .ignore_merges = true};
}

// Other names of an id are those that converters write for the same pattern.
constexpr Known kKnown[] = {
    {.id = "gpt-2", .pattern = KnownPattern::kGpt2},
    {.id = "phi-2", .pattern = KnownPattern::kGpt2},
    Digits("smollm"),
    Digits("starcoder"),
    Digits("refact"),
    Digits("codeshell"),
    Llama3("llama-bpe"),
    Llama3("llama3"),
    Llama3("llama-v3"),
    Llama3("falcon3"),
    Llama3("lfm2"),
    {.id = "smaug-bpe",
     .pattern = KnownPattern::kLlama3,
     .ignore_merges = true},
    Qwen2("qwen2", true),
    // The distilled models have no normaliser.
    Qwen2("deepseek-r1-qwen", false),
    {.id = "qwen35", .pattern = KnownPattern::kQwen35, .nfc = true},
    Gpt4o("gpt-4o"),
    Gpt4o("llama4"),
    {.id = "deepseek-v3", .pattern = KnownPattern::kDeepSeekV3Words},
    {.id = "kimi-k2", .pattern = KnownPattern::kKimiK2, .ignore_merges = true},
};

constexpr absl::string_view kHanAndKana =
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";

}  // namespace

absl::StatusOr<std::optional<GgufPre>> FindGgufPre(absl::string_view id,
                                                   absl::string_view object) {
  const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& k) { return k.id == id; });
  if (known == std::end(kKnown)) {
    return std::nullopt;
  }
  std::vector<std::unique_ptr<Pattern>> patterns;
  if (known->digits_first) {
    patterns.push_back(RulesPattern(RulesOf(KnownPattern::kOneDigit)));
  }
  if (known->pattern == KnownPattern::kDeepSeekV3Words) {
    patterns.push_back(RulesPattern(RulesOf(KnownPattern::kThreeDigits)));
    MILLRACE_ASSIGN_OR_RETURN(auto han_and_kana,
                              RegexPattern(kHanAndKana, object));
    patterns.push_back(std::move(han_and_kana));
  }
  patterns.push_back(RulesPattern(RulesOf(known->pattern)));
  GgufPre out{.pre_tokenizer = {},
              .ignore_merges = known->ignore_merges,
              .nfc = known->nfc,
              .add_bos = known->add_bos};
  for (std::unique_ptr<Pattern>& pattern : patterns) {
    out.pre_tokenizer.AddSplit(std::move(pattern),
                               PreTokenizer::Behavior::kIsolated, false);
  }
  out.pre_tokenizer.AddByteLevel(false, false);
  return std::optional<GgufPre>(std::move(out));
}

}  // namespace millrace::model
