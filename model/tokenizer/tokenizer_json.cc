// Builds a tokenizer from the text of a tokenizer.json.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/pipeline_tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

// Above the merges of any vocabulary known (514,906).
constexpr size_t kMergesMax = size_t{1} << 23;
constexpr size_t kAddedTokensMax = 65536;

absl::string_view View(const boost::json::string& text) {
  return {text.data(), text.size()};
}

absl::StatusOr<std::unique_ptr<Vocabulary>> ReadVocabulary(
    const JsonObject& model, absl::string_view file) {
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject vocab, model.Object("vocab"));
  std::vector<std::pair<std::string, TokenId>> entries;
  entries.reserve(vocab.raw().size());
  for (const auto& [token, id] : vocab.raw()) {
    const absl::string_view text(token.data(), token.size());
    if (!id.is_int64() || id.get_int64() < 0 ||
        id.get_int64() >= kVocabularyMax) {
      return vocab.ErrorAt(text, "has no id or one that is out of range");
    }
    entries.emplace_back(std::string(text),
                         static_cast<TokenId>(id.get_int64()));
  }
  return Vocabulary::Create(std::move(entries), file);
}

// "left right" or ["left", "right"].
absl::StatusOr<std::pair<std::string, std::string>> ReadMerge(
    const Json& value, const JsonObject& model) {
  if (value.is_string()) {
    const absl::string_view text = View(value.get_string());
    const size_t cut = text.find(' ');
    if (cut != absl::string_view::npos &&
        text.find(' ', cut + 1) == absl::string_view::npos) {
      return std::pair(std::string(text.substr(0, cut)),
                       std::string(text.substr(cut + 1)));
    }
  } else if (value.is_array() && value.get_array().size() == 2 &&
             value.get_array()[0].is_string() &&
             value.get_array()[1].is_string()) {
    return std::pair(std::string(View(value.get_array()[0].get_string())),
                     std::string(View(value.get_array()[1].get_string())));
  }
  return model.ErrorAt("merges", "has an element that is no pair of tokens");
}

absl::StatusOr<Bpe::Merges> ReadMerges(const JsonObject& model) {
  const Json* list = model.Find("merges");
  if (list == nullptr || !list->is_array() ||
      list->get_array().size() > kMergesMax) {
    return model.ErrorAt("merges", "must be a list of pairs of tokens");
  }
  Bpe::Merges out;
  out.reserve(list->get_array().size());
  for (const Json& value : list->get_array()) {
    MILLRACE_ASSIGN_OR_RETURN(auto merge, ReadMerge(value, model));
    out.push_back(std::move(merge));
  }
  return out;
}

absl::Status RefuseUnsupported(const JsonObject& model) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string type,
                            model.StringOr("type", "BPE"));
  if (type != "BPE") {
    return WithHint(
        model.ErrorAt("type", absl::StrCat("'", Printable(type),
                                           "' is not supported in this "
                                           "version")),
        "use a model whose tokenizer is byte-level or SentencePiece BPE");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string affix, model.StringOr(key, ""));
    if (!affix.empty()) {
      return model.ErrorAt(key, "is not supported in this version");
    }
  }
  MILLRACE_ASSIGN_OR_RETURN(const double dropout,
                            model.NumberOr("dropout", 0, 1, 0));
  if (dropout != 0) {
    return model.ErrorAt("dropout", "must be 0: ids would be random");
  }
  return absl::OkStatus();
}

absl::Status ReadModel(const JsonObject& model, absl::string_view file,
                       TokenizerParts* parts) {
  MILLRACE_RETURN_IF_ERROR(RefuseUnsupported(model));
  MILLRACE_ASSIGN_OR_RETURN(parts->vocabulary, ReadVocabulary(model, file));
  Bpe::Options options;
  MILLRACE_ASSIGN_OR_RETURN(options.ignore_merges,
                            model.BoolOr("ignore_merges", false));
  MILLRACE_ASSIGN_OR_RETURN(options.byte_fallback,
                            model.BoolOr("byte_fallback", false));
  MILLRACE_ASSIGN_OR_RETURN(options.fuse_unknown,
                            model.BoolOr("fuse_unk", false));
  if (model.Has("unk_token")) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string unknown,
                              model.String("unk_token"));
    const TokenId id = parts->vocabulary->Id(unknown);
    if (id < 0) {
      return model.ErrorAt("unk_token", "is not in the vocabulary");
    }
    options.unknown = id;
  }
  MILLRACE_ASSIGN_OR_RETURN(const Bpe::Merges merges, ReadMerges(model));
  MILLRACE_ASSIGN_OR_RETURN(
      parts->bpe, Bpe::FromMerges(*parts->vocabulary, merges, options, file));
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> ReadAddedToken(const JsonObject& object,
                                          const Vocabulary& vocabulary) {
  AddedToken token;
  MILLRACE_ASSIGN_OR_RETURN(token.content, object.String("content"));
  const absl::StatusOr<int64_t> id =
      object.Integer("id", 0, kVocabularyMax - 1);
  if (!id.ok()) {
    return object.ErrorAt(
        "id", absl::StrCat("of '", Printable(token.content),
                           "' must be a whole number below ", kVocabularyMax));
  }
  // The vocabulary's own id comes first, as in the reference.
  const TokenId known = vocabulary.Id(token.content);
  token.id = known >= 0 ? known : static_cast<TokenId>(*id);
  MILLRACE_ASSIGN_OR_RETURN(token.special, object.BoolOr("special", false));
  MILLRACE_ASSIGN_OR_RETURN(token.normalized,
                            object.BoolOr("normalized", !token.special));
  MILLRACE_ASSIGN_OR_RETURN(token.single_word,
                            object.BoolOr("single_word", false));
  MILLRACE_ASSIGN_OR_RETURN(token.lstrip, object.BoolOr("lstrip", false));
  MILLRACE_ASSIGN_OR_RETURN(token.rstrip, object.BoolOr("rstrip", false));
  return token;
}

absl::Status ReadAddedTokens(const JsonObject& root, absl::string_view file,
                             TokenizerParts* parts) {
  const Json* list = root.Find("added_tokens");
  if (list == nullptr) {
    return absl::OkStatus();
  }
  if (!list->is_array() || list->get_array().size() > kAddedTokensMax) {
    return root.ErrorAt("added_tokens", "must be a list of tokens");
  }
  for (const Json& value : list->get_array()) {
    MILLRACE_ASSIGN_OR_RETURN(
        const JsonObject object,
        JsonObject::From(
            value, file,
            absl::StrCat("added_tokens[", parts->added.size(), "]")));
    MILLRACE_ASSIGN_OR_RETURN(AddedToken token,
                              ReadAddedToken(object, *parts->vocabulary));
    parts->added.push_back(std::move(token));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromTokenizerJson(
    absl::string_view json, absl::string_view object) {
  JsonLimits limits;
  limits.refuse_repeated_keys = false;  // half of the time, for nothing else
  MILLRACE_ASSIGN_OR_RETURN(const Json value, ParseJson(json, object, limits));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject root,
                            JsonObject::From(value, object));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject model, root.Object("model"));
  TokenizerParts parts;
  MILLRACE_RETURN_IF_ERROR(ReadModel(model, object, &parts));
  MILLRACE_RETURN_IF_ERROR(ReadAddedTokens(root, object, &parts));
  MILLRACE_ASSIGN_OR_RETURN(
      parts.normalizer, Normalizer::FromJson(root.Find("normalizer"), object));
  MILLRACE_ASSIGN_OR_RETURN(
      parts.pre_tokenizer,
      PreTokenizer::FromJson(root.Find("pre_tokenizer"), object));
  MILLRACE_ASSIGN_OR_RETURN(
      parts.surroundings,
      SurroundingsFromJson(root.Find("post_processor"), object));
  MILLRACE_ASSIGN_OR_RETURN(parts.decoder,
                            Decoder::FromJson(root.Find("decoder"), object));
  return PipelineTokenizer::Create(std::move(parts), object);
}

}  // namespace millrace::model
