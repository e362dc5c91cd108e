#include "model/checkpoint/gguf_vocabulary_reader.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"

namespace millrace::model {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";

absl::Status CheckLength(const GgufFile& file, absl::string_view key,
                         size_t length, size_t tokens) {
  if (length == tokens) {
    return absl::OkStatus();
  }
  return file.ErrorAt(
      key, absl::StrCat("has ", length, " entries for ", tokens, " tokens"));
}

absl::Status ReadTypes(const GgufFile& file, GgufVocabulary& out) {
  // Type 0, undefined, stands in some files; nothing distinguishes it from a
  // normal token.
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> types,
                            file.Integers(kTypes, 0, 6));
  MILLRACE_RETURN_IF_ERROR(
      CheckLength(file, kTypes, types.size(), out.tokens.size()));
  out.types.reserve(types.size());
  for (const int64_t type : types) {
    out.types.push_back(type == 0 ? GgufTokenType::kNormal
                                  : static_cast<GgufTokenType>(type));
  }
  return absl::OkStatus();
}

// `must_fit`: ids that steer decoding are refused when out of range; others
// (padding and the like, wrong in files in use) count as missing. All ones
// means none.
absl::Status ReadId(const GgufFile& file, absl::string_view name, bool must_fit,
                    size_t num_tokens, std::optional<int32_t>& out) {
  const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
  if (!file.Has(key)) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t id,
                            file.Integer(key, INT32_MIN, UINT32_MAX));
  if (id == -1 || id == UINT32_MAX) {
    return absl::OkStatus();
  }
  if (id >= 0 && id < static_cast<int64_t>(num_tokens)) {
    out = static_cast<int32_t>(id);
    return absl::OkStatus();
  }
  if (!must_fit) {
    return absl::OkStatus();
  }
  return file.ErrorAt(
      key, absl::StrCat("is ", id, ", the vocabulary has ",
                        Counted(static_cast<int64_t>(num_tokens), "token")));
}

absl::Status ReadIds(const GgufFile& file, GgufVocabulary& out) {
  const size_t n = out.tokens.size();
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "bos", true, n, out.bos_id));
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "eos", true, n, out.eos_id));
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "eot", true, n, out.eot_id));
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "eom", true, n, out.eom_id));
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "unknown", false, n, out.unknown_id));
  MILLRACE_RETURN_IF_ERROR(ReadId(file, "padding", false, n, out.padding_id));
  // The format spells it so.
  MILLRACE_RETURN_IF_ERROR(
      ReadId(file, "seperator", false, n, out.separator_id));
  return ReadId(file, "mask", false, n, out.mask_id);
}

absl::Status ReadFlag(const GgufFile& file, absl::string_view name,
                      std::optional<bool>& out) {
  const std::string key = absl::StrCat("tokenizer.ggml.", name);
  if (file.Has(key)) {
    MILLRACE_ASSIGN_OR_RETURN(out, file.BoolOr(key, false));
  }
  return absl::OkStatus();
}

}  // namespace

bool HasGgufVocabulary(const GgufFile& file) {
  const GgufValue* model = file.Find(kModel);
  const bool none = model != nullptr && model->type == GgufType::kString &&
                    (model->bytes == "none" || model->bytes == "no_vocab");
  return !none && (model != nullptr || file.Has(kTokens));
}

absl::StatusOr<GgufVocabulary> GgufVocabularyOf(const GgufFile& file) {
  GgufVocabulary out;
  MILLRACE_ASSIGN_OR_RETURN(out.model, file.String(kModel));
  MILLRACE_ASSIGN_OR_RETURN(out.pre, file.StringOr("tokenizer.ggml.pre", ""));
  MILLRACE_ASSIGN_OR_RETURN(const auto* tokens, file.Strings(kTokens));
  if (tokens->empty()) {
    return file.ErrorAt(kTokens, "is empty");
  }
  out.tokens = *tokens;
  if (file.Has(kScores)) {
    MILLRACE_ASSIGN_OR_RETURN(out.scores, file.Floats(kScores));
    MILLRACE_RETURN_IF_ERROR(
        CheckLength(file, kScores, out.scores.size(), out.tokens.size()));
  }
  if (file.Has(kTypes)) {
    MILLRACE_RETURN_IF_ERROR(ReadTypes(file, out));
  }
  if (file.Has(kMerges)) {
    MILLRACE_ASSIGN_OR_RETURN(const auto* merges, file.Strings(kMerges));
    out.merges = *merges;
  }
  MILLRACE_RETURN_IF_ERROR(ReadIds(file, out));
  MILLRACE_RETURN_IF_ERROR(ReadFlag(file, "add_bos_token", out.add_bos));
  MILLRACE_RETURN_IF_ERROR(ReadFlag(file, "add_eos_token", out.add_eos));
  MILLRACE_RETURN_IF_ERROR(
      ReadFlag(file, "add_space_prefix", out.add_space_prefix));
  return out;
}

absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file,
                            GgufFile::Open(path, GgufFile::Extent::kMetadata));
  return GgufVocabularyOf(*file);
}

}  // namespace millrace::model
