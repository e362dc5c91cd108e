// Builds a tokenizer from the vocabulary of a GGUF file.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/gguf_pre.h"
#include "model/tokenizer/pipeline_tokenizer.h"

namespace millrace::model {
namespace {

constexpr absl::string_view kBlank = "\u2581";

GgufTokenType TypeOf(const GgufVocabulary& vocabulary, size_t id) {
  return vocabulary.types.empty() ? GgufTokenType::kNormal
                                  : vocabulary.types[id];
}

// [PADn], a row without meaning, which older files call user-defined.
bool IsPadding(absl::string_view token) {
  if (!absl::StartsWith(token, "[PAD") || !absl::EndsWith(token, "]") ||
      token.size() < 6) {
    return false;
  }
  const absl::string_view number = token.substr(4, token.size() - 5);
  return std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

std::vector<AddedToken> AddedTokensOf(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> out;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const GgufTokenType type = TypeOf(vocabulary, id);
    const bool user = type == GgufTokenType::kUserDefined;
    if ((!user && type != GgufTokenType::kControl &&
         type != GgufTokenType::kUnknown) ||
        (user && IsPadding(vocabulary.tokens[id]))) {
      continue;
    }
    out.push_back({.content = vocabulary.tokens[id],
                   .id = static_cast<TokenId>(id),
                   .special = !user});
  }
  return out;
}

// "left right"; the left side may begin with a blank itself.
absl::StatusOr<Bpe::Merges> MergesOf(const GgufVocabulary& vocabulary,
                                     absl::string_view object) {
  Bpe::Merges out;
  out.reserve(vocabulary.merges.size());
  for (const std::string& merge : vocabulary.merges) {
    const size_t cut = merge.find(' ', 1);
    if (cut == std::string::npos) {
      return InputError(object, absl::StrCat("tokenizer.ggml.merges: '",
                                             Printable(merge), "' is no pair"));
    }
    out.emplace_back(merge.substr(0, cut), merge.substr(cut + 1));
  }
  return out;
}

void SetMerges(const GgufVocabulary& vocabulary, const Bpe::Options& options,
               absl::string_view object, TokenizerParts* parts) {
  absl::Status error;
  if (const auto merges = MergesOf(vocabulary, object); !merges.ok()) {
    error = merges.status();
  } else if (auto bpe =
                 Bpe::FromMerges(*parts->vocabulary, *merges, options, object);
             bpe.ok()) {
    parts->bpe = *std::move(bpe);
  } else {
    error = bpe.status();
  }
  if (parts->encode_error.ok()) {
    parts->encode_error = error;
  }
}

// Tokens in the order of falling score, equal scores with equal rank.
absl::StatusOr<std::vector<uint32_t>> ScoreRanks(
    const GgufVocabulary& vocabulary, absl::string_view object) {
  if (vocabulary.scores.size() != vocabulary.tokens.size() ||
      !std::all_of(vocabulary.scores.begin(), vocabulary.scores.end(),
                   [](float score) { return std::isfinite(score); })) {
    return InputError(object,
                      "tokenizer.ggml.scores: must be one finite number for "
                      "each token");
  }
  std::vector<size_t> order(vocabulary.tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return vocabulary.scores[a] > vocabulary.scores[b];
  });
  std::vector<uint32_t> out(order.size(), Bpe::kNoRank);
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 &&
        vocabulary.scores[order[i]] < vocabulary.scores[order[i - 1]]) {
      ++rank;
    }
    const GgufTokenType type = TypeOf(vocabulary, order[i]);
    if (type == GgufTokenType::kNormal || type == GgufTokenType::kUserDefined) {
      out[order[i]] = rank;
    }
  }
  return out;
}

// GPT-2's way: words in the byte alphabet. True where BOS is the default.
absl::StatusOr<bool> BuildByteLevel(const GgufVocabulary& vocabulary,
                                    absl::string_view object,
                                    TokenizerParts* parts) {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<GgufPre> pre,
                            FindGgufPre(vocabulary.pre, object));
  parts->decoder.AddByteLevel();
  if (!pre) {
    parts->encode_error = InputError(
        object,
        absl::StrCat("tokenizer.ggml.pre: '", Printable(vocabulary.pre),
                     "' is not known, so text cannot be tokenized"),
        "send token ids, or convert the model anew with a tool that writes "
        "the id of its pre-tokenizer");
    return false;
  }
  parts->pre_tokenizer = std::move(pre->pre_tokenizer);
  if (pre->nfc) {
    parts->normalizer.AddUnicodeForm(UnicodeForm::kNfc);
  }
  SetMerges(vocabulary, {.ignore_merges = pre->ignore_merges}, object, parts);
  return pre->add_bos;
}

// SentencePiece's way: characters, blanks as U+2581, bytes for the unknown.
absl::StatusOr<bool> BuildSentencePiece(const GgufVocabulary& vocabulary,
                                        absl::string_view object,
                                        TokenizerParts* parts) {
  const bool by_scores = vocabulary.model == "llama";
  const bool prefix = vocabulary.add_space_prefix.value_or(by_scores);
  if (prefix) {
    parts->normalizer.AddPrepend(kBlank);
  }
  parts->normalizer.AddReplace(LiteralPattern(" "), kBlank);
  parts->decoder.AddReplace(kBlank, " ");
  parts->decoder.AddByteFallback();
  parts->decoder.AddFuse();
  if (prefix) {
    parts->decoder.AddStrip(" ", 1);
  }
  Bpe::Options options{.byte_fallback = true, .fuse_unknown = true};
  if (vocabulary.unknown_id &&
      parts->vocabulary->Find(*vocabulary.unknown_id) != nullptr) {
    options.unknown = *vocabulary.unknown_id;
  }
  if (!by_scores) {
    SetMerges(vocabulary, options, object, parts);
    return true;
  }
  MILLRACE_ASSIGN_OR_RETURN(std::vector<uint32_t> ranks,
                            ScoreRanks(vocabulary, object));
  parts->bpe = Bpe::FromScores(*parts->vocabulary, std::move(ranks), options);
  return true;
}

absl::StatusOr<bool> Build(const GgufVocabulary& vocabulary,
                           absl::string_view object, TokenizerParts* parts) {
  if (vocabulary.model == "gpt2") {
    return BuildByteLevel(vocabulary, object, parts);
  }
  if (vocabulary.model == "llama" || vocabulary.model == "gemma4") {
    return BuildSentencePiece(vocabulary, object, parts);
  }
  parts->encode_error = InputError(
      object,
      absl::StrCat("tokenizer.ggml.model: '", Printable(vocabulary.model),
                   "' is not supported in this version, so text cannot be "
                   "tokenized"),
      "send token ids");
  parts->decoder.AddReplace(kBlank, " ");
  parts->decoder.AddByteFallback();
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(
    const GgufVocabulary& vocabulary, absl::string_view object) {
  if (!vocabulary.types.empty() &&
      vocabulary.types.size() != vocabulary.tokens.size()) {
    return InputError(object,
                      "tokenizer.ggml.token_type: must have one type for "
                      "each token");
  }
  std::vector<std::pair<std::string, TokenId>> entries;
  entries.reserve(vocabulary.tokens.size());
  for (const std::string& token : vocabulary.tokens) {
    entries.emplace_back(token, static_cast<TokenId>(entries.size()));
  }
  TokenizerParts parts;
  MILLRACE_ASSIGN_OR_RETURN(parts.vocabulary,
                            Vocabulary::Create(std::move(entries), object));
  parts.added = AddedTokensOf(vocabulary);
  MILLRACE_ASSIGN_OR_RETURN(const bool bos_by_default,
                            Build(vocabulary, object, &parts));
  if (vocabulary.add_bos.value_or(bos_by_default) && vocabulary.bos_id) {
    parts.surroundings.front.push_back(*vocabulary.bos_id);
  }
  if (vocabulary.add_eos.value_or(false) && vocabulary.eos_id) {
    parts.surroundings.back.push_back(*vocabulary.eos_id);
  }
  return PipelineTokenizer::Create(std::move(parts), object);
}

}  // namespace millrace::model
