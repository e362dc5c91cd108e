#include <utility>

#include "model/tokenizer/decoder.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {

std::unique_ptr<DecodeRun> Tokenizer::StartDecoding() const { return nullptr; }

struct StreamingDetokenizer::State {
  const Tokenizer* tokenizer;
  bool skip_special;
  std::unique_ptr<DecodeRun> run;
  LossyUtf8 bytes;  // where the tokenizer has no run
};

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer,
                                           bool skip_special)
    : state_(std::make_unique<State>(State{.tokenizer = &tokenizer,
                                           .skip_special = skip_special,
                                           .run = tokenizer.StartDecoding(),
                                           .bytes = {}})) {}

StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept =
    default;
StreamingDetokenizer& StreamingDetokenizer::operator=(
    StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::Append(TokenId id) {
  std::string out;
  if (state_->skip_special && state_->tokenizer->IsSpecial(id)) {
    return out;
  }
  if (state_->run == nullptr) {
    state_->bytes.Append(state_->tokenizer->TokenBytes(id), &out);
    return out;
  }
  // An id without a token has no text.
  if (const auto piece = state_->tokenizer->Piece(id); piece.ok()) {
    state_->run->Append(*piece, &out);
  }
  return out;
}

std::string StreamingDetokenizer::Finish() {
  std::string out;
  if (state_->run == nullptr) {
    state_->bytes.Finish(&out);
  } else {
    state_->run->Finish(&out);
  }
  return out;
}

}  // namespace millrace::model
