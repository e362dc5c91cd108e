// Stands in for model/tokenizer in a tree that lacks it: token bytes joined,
// whole code points only.
#include "coordinator/api/utf8.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

struct StreamingDetokenizer::State {
  const Tokenizer* tokenizer;
  bool skip_special;
  std::string held;
};

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer,
                                           bool skip_special)
    : state_(std::make_unique<State>(State{&tokenizer, skip_special, ""})) {}
StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept =
    default;
StreamingDetokenizer& StreamingDetokenizer::operator=(
    StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::Append(TokenId id) {
  if (state_->skip_special && state_->tokenizer->IsSpecial(id)) {
    return "";
  }
  state_->held += state_->tokenizer->TokenBytes(id);
  if (!coordinator::IsWellFormed(state_->held) && state_->held.size() < 4) {
    return "";
  }
  std::string out = coordinator::WellFormed(state_->held);
  state_->held.clear();
  return out;
}

std::string StreamingDetokenizer::Finish() {
  std::string out = coordinator::WellFormed(state_->held);
  state_->held.clear();
  return out;
}

}  // namespace millrace::model
