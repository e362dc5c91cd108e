#include "model/tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/byte_alphabet.h"

namespace millrace::model {
namespace {

// Offsets within a word are 32 bits wide; a normaliser or the byte alphabet
// can triple a text.
constexpr size_t kTextBytesMax = size_t{256} << 20;

}  // namespace

struct PipelineTokenizer::Work {
  Bpe::Workspace bpe;
  std::vector<TokenId> ids;
};

PipelineTokenizer::PipelineTokenizer(TokenizerParts parts,
                                     absl::string_view object)
    : parts_(std::move(parts)), object_(object) {}

absl::StatusOr<std::unique_ptr<Tokenizer>> PipelineTokenizer::Create(
    TokenizerParts parts, absl::string_view object) {
  auto out = std::unique_ptr<PipelineTokenizer>(
      new PipelineTokenizer(std::move(parts), object));
  MILLRACE_RETURN_IF_ERROR(out->AddTokens());
  out->CheckByteCharacters();
  return out;
}

// Text in the byte alphabet needs a token for each byte of it. Some
// vocabularies in use lack controls and leads of planes that nothing is in;
// such characters are dropped, as the reference does.
void PipelineTokenizer::CheckByteCharacters() {
  if (!parts_.pre_tokenizer.byte_level() || !parts_.encode_error.ok()) {
    return;
  }
  for (int byte = 0; byte < 0xF0; ++byte) {
    const bool needed = byte == '\n' || (byte >= 0x20 && byte != 0x7F &&
                                         byte != 0xC0 && byte != 0xC1);
    std::string character;
    AppendAsAlphabet(std::string(1, static_cast<char>(byte)), &character);
    if (needed && parts_.vocabulary->Id(character) < 0) {
      parts_.encode_error =
          InputError(object_,
                     absl::StrCat("the vocabulary has no token for byte ", byte,
                                  ", so text cannot be tokenized"),
                     "send token ids");
      return;
    }
  }
}

absl::Status PipelineTokenizer::AddTokens() {
  size_ = parts_.vocabulary->size();
  absl::flat_hash_set<TokenId> control;
  for (AddedToken& token : parts_.added) {
    if (token.special) {
      control.insert(token.id);
    }
    if (token.content.size() > kAddedTokenBytesMax) {
      return InputError(
          object_, absl::StrCat("added token ", token.id, " has ",
                                token.content.size(), " bytes, more than the ",
                                kAddedTokenBytesMax, " allowed"));
    }
    size_ = std::max(size_, int64_t{token.id} + 1);
    added_by_id_[token.id] = &token;
    added_by_text_[token.content] = token.id;
    if (!token.normalized) {
      raw_matcher_.Add(token.content, token);
      continue;
    }
    MarkedText content(Trust::kFull);
    content.Append(token.content, Trust::kFull);
    MILLRACE_ASSIGN_OR_RETURN(content,
                              parts_.normalizer.Apply(std::move(content)));
    normalized_matcher_.Add(content.text(), token);
  }
  if (parts_.bpe != nullptr) {
    parts_.bpe->KeepFromText(control);
  }
  const auto known = [this](TokenId id) { return id >= 0 && id < size_; };
  const Surroundings& around = parts_.surroundings;
  if (!std::all_of(around.front.begin(), around.front.end(), known) ||
      !std::all_of(around.back.begin(), around.back.end(), known)) {
    return InputError(object_, "a special token put around texts is no token");
  }
  return absl::OkStatus();
}

absl::Status PipelineTokenizer::EncodeWords(absl::string_view text,
                                            bool at_start, Work* work) const {
  Words words{.text = std::string(text),
              .spans = {{0, text.size()}},
              .at_start = at_start};
  MILLRACE_RETURN_IF_ERROR(parts_.pre_tokenizer.Apply(&words));
  if (words.text.size() > std::numeric_limits<int32_t>::max()) {
    return InputError(object_, "the text is too long to be tokenized");
  }
  const absl::string_view whole = words.text;
  for (const Span& span : words.spans) {
    parts_.bpe->Encode(whole.substr(span.begin, span.end - span.begin),
                       &work->bpe, &work->ids);
  }
  return absl::OkStatus();
}

absl::Status PipelineTokenizer::EncodePiece(const MarkedText& text,
                                            size_t source_begin,
                                            Work* work) const {
  MarkedText normalized = text;
  if (!parts_.normalizer.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(normalized,
                              parts_.normalizer.Apply(std::move(normalized)));
  }
  const absl::string_view all = normalized.text();
  size_t done = 0;
  const auto words = [&](size_t end) {
    const size_t begin = std::exchange(done, end);
    return begin == end ? absl::OkStatus()
                        : EncodeWords(all.substr(begin, end - begin),
                                      source_begin == 0 && begin == 0, work);
  };
  for (const auto& match : normalized_matcher_.FindAll(normalized)) {
    MILLRACE_RETURN_IF_ERROR(words(match.span.begin));
    work->ids.push_back(match.id);
    done = match.span.end;
  }
  return words(all.size());
}

absl::Status PipelineTokenizer::EncodeMarked(const MarkedText& text,
                                             Work* work) const {
  if (text.size() > kTextBytesMax) {
    return InputError(object_, absl::StrCat("cannot tokenize ", text.size(),
                                            " bytes of text at once"));
  }
  size_t done = 0;
  const auto piece = [&](size_t end) {
    const size_t begin = std::exchange(done, end);
    return begin == end ? absl::OkStatus()
                        : EncodePiece(text.Sub(begin, end), begin, work);
  };
  for (const auto& match : raw_matcher_.FindAll(text)) {
    MILLRACE_RETURN_IF_ERROR(piece(match.span.begin));
    work->ids.push_back(match.id);
    done = match.span.end;
  }
  return piece(text.size());
}

absl::StatusOr<std::vector<TokenId>> PipelineTokenizer::Encode(
    absl::string_view text, AddedTokenMode mode, bool add_special) const {
  MILLRACE_RETURN_IF_ERROR(parts_.encode_error);
  Work work;
  if (add_special) {
    work.ids = parts_.surroundings.front;
  }
  MILLRACE_RETURN_IF_ERROR(EncodeMarked(MarkedText::From(text, mode), &work));
  if (add_special) {
    work.ids.insert(work.ids.end(), parts_.surroundings.back.begin(),
                    parts_.surroundings.back.end());
  }
  return std::move(work.ids);
}

absl::StatusOr<std::vector<TokenId>> PipelineTokenizer::EncodeSegments(
    absl::Span<const TextSegment> segments) const {
  MILLRACE_RETURN_IF_ERROR(parts_.encode_error);
  Work work;
  MILLRACE_RETURN_IF_ERROR(EncodeMarked(MarkedText::Join(segments), &work));
  return std::move(work.ids);
}

const std::string* PipelineTokenizer::FindToken(TokenId id) const {
  const auto added = added_by_id_.find(id);
  return added != added_by_id_.end() ? &added->second->content
                                     : parts_.vocabulary->Find(id);
}

absl::StatusOr<std::string> PipelineTokenizer::Decode(
    absl::Span<const TokenId> ids, bool skip_special) const {
  std::string out;
  DecodeRun run(parts_.decoder);
  for (const TokenId id : ids) {
    if (id < 0 || id >= size_) {
      return InputError(object_, absl::StrCat("has no token ", id,
                                              "; ids end at ", size_ - 1));
    }
    const std::string* token = FindToken(id);
    if (token != nullptr && !(skip_special && IsSpecial(id))) {
      run.Append(*token, &out);
    }
  }
  run.Finish(&out);
  return out;
}

absl::StatusOr<std::string> PipelineTokenizer::Piece(TokenId id) const {
  const std::string* token = FindToken(id);
  if (token == nullptr) {
    return InputError(object_, absl::StrCat("has no token ", id));
  }
  return *token;
}

std::string PipelineTokenizer::TokenBytes(TokenId id) const {
  const std::string* token = FindToken(id);
  return token == nullptr ? "" : parts_.decoder.TokenBytes(*token);
}

std::unique_ptr<DecodeRun> PipelineTokenizer::StartDecoding() const {
  return std::make_unique<DecodeRun>(parts_.decoder);
}

int64_t PipelineTokenizer::vocab_size() const { return size_; }

bool PipelineTokenizer::IsSpecial(TokenId id) const {
  const auto added = added_by_id_.find(id);
  return added != added_by_id_.end() && added->second->special;
}

std::optional<TokenId> PipelineTokenizer::FindAdded(
    absl::string_view text) const {
  const auto found = added_by_text_.find(text);
  return found == added_by_text_.end() ? std::nullopt
                                       : std::optional(found->second);
}

std::vector<TokenId> PipelineTokenizer::Prefix() const {
  return parts_.surroundings.front;
}

}  // namespace millrace::model
