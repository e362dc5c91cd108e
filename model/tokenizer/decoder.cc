#include "model/tokenizer/decoder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "model/tokenizer/byte_alphabet.h"

namespace millrace::model {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The byte of a token <0xNN>, or -1.
int ByteOf(absl::string_view token) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>') {
    return -1;
  }
  const int high = HexDigit(token[3]);
  const int low = HexDigit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Characters outside of the alphabet: the token stands for its own bytes.
std::string AlphabetOrSelf(absl::string_view token) {
  std::optional<std::string> bytes = BytesOfAlphabet(token);
  return bytes ? *std::move(bytes) : std::string(token);
}

std::string Replace(absl::string_view text, absl::string_view from,
                    absl::string_view to) {
  return from.empty() ? std::string(text)
                      : absl::StrReplaceAll(text, {{from, to}});
}

}  // namespace

void Decoder::Add(Step step) {
  step.whole_text = !steps_.empty() && (steps_.back().whole_text ||
                                        steps_.back().kind == Kind::kFuse ||
                                        steps_.back().kind == Kind::kByteLevel);
  steps_.push_back(std::move(step));
}

void Decoder::AddByteLevel() { Add({.kind = Kind::kByteLevel}); }

void Decoder::AddReplace(absl::string_view from, absl::string_view to) {
  Add({.kind = Kind::kReplace,
       .from = std::string(from),
       .to = std::string(to)});
}

void Decoder::AddByteFallback() { Add({.kind = Kind::kByteFallback}); }

void Decoder::AddFuse() { Add({.kind = Kind::kFuse}); }

void Decoder::AddStrip(absl::string_view content, int64_t start) {
  Add({.kind = Kind::kStrip, .from = std::string(content), .start = start});
}

std::string Decoder::TokenBytes(absl::string_view token) const {
  std::string text(token);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kByteLevel:
        text = AlphabetOrSelf(text);
        break;
      case Kind::kReplace:
        text = Replace(text, step.from, step.to);
        break;
      case Kind::kByteFallback:
        if (const int byte = ByteOf(text); byte >= 0) {
          return std::string(1, static_cast<char>(byte));
        }
        break;
      case Kind::kMetaspace:
        text = Replace(text, step.from, " ");
        break;
      case Kind::kJoinByBlanks:
      case Kind::kFuse:
      case Kind::kStrip:
        break;
    }
  }
  return text;
}

DecodeRun::DecodeRun(const Decoder& decoder)
    : decoder_(decoder), states_(decoder.steps_.size()) {
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].left = decoder.steps_[i].start;
  }
}

void DecodeRun::Append(absl::string_view token, std::string* out) {
  Feed(0, token, out);
}

void DecodeRun::Finish(std::string* out) {
  for (size_t i = 0; i < states_.size(); ++i) {
    FlushBytes(i, out);
    std::string rest;
    states_[i].bytes.Finish(&rest);
    if (!rest.empty()) {
      Feed(i + 1, rest, out);
    }
  }
}

void DecodeRun::FlushBytes(size_t step, std::string* out) {
  std::string& run = states_[step].run;
  if (run.empty()) {
    return;
  }
  const std::string bytes = std::exchange(run, {});
  if (IsWellFormed(bytes)) {
    Feed(step + 1, bytes, out);
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    Feed(step + 1, kReplacementCharacter, out);
  }
}

std::string DecodeRun::Strip(size_t step, absl::string_view text) {
  const Decoder::Step& rule = decoder_.steps_[step];
  int64_t fresh = rule.start;
  int64_t& left = rule.whole_text ? states_[step].left : fresh;
  while (left > 0 && absl::StartsWith(text, rule.from)) {
    text.remove_prefix(rule.from.size());
    --left;
  }
  if (!text.empty()) {
    left = 0;
  }
  return std::string(text);
}

std::string DecodeRun::Metaspace(size_t step, absl::string_view text) {
  const Decoder::Step& rule = decoder_.steps_[step];
  const bool drop = states_[step].first && rule.drop_first;
  states_[step].first = false;
  return Replace(text, rule.from, drop ? "" : " ");
}

void DecodeRun::Feed(size_t step, absl::string_view text, std::string* out) {
  if (step == states_.size()) {
    out->append(text.data(), text.size());
    return;
  }
  const Decoder::Step& rule = decoder_.steps_[step];
  State& state = states_[step];
  switch (rule.kind) {
    case Decoder::Kind::kJoinByBlanks:
      if (!std::exchange(state.first, false)) {
        Feed(step + 1, " ", out);
      }
      return Feed(step + 1, text, out);
    case Decoder::Kind::kByteLevel: {
      std::string certain;
      state.bytes.Append(AlphabetOrSelf(text), &certain);
      return certain.empty() ? void() : Feed(step + 1, certain, out);
    }
    case Decoder::Kind::kReplace:
      return Feed(step + 1, Replace(text, rule.from, rule.to), out);
    case Decoder::Kind::kByteFallback:
      if (const int byte = ByteOf(text); byte >= 0) {
        // All bytes in a row count together: one that does not fit spoils the
        // whole row, so nothing of it is certain before it ends.
        state.run.push_back(static_cast<char>(byte));
        return;
      }
      FlushBytes(step, out);
      return Feed(step + 1, text, out);
    case Decoder::Kind::kFuse:
      return Feed(step + 1, text, out);
    case Decoder::Kind::kStrip:
      return Feed(step + 1, Strip(step, text), out);
    case Decoder::Kind::kMetaspace:
      return Feed(step + 1, Metaspace(step, text), out);
  }
}

absl::StatusOr<Decoder> Decoder::FromJson(const Json* value,
                                          absl::string_view file) {
  Decoder out;
  if (value == nullptr) {
    out.Add({.kind = Kind::kJoinByBlanks});
    return out;
  }
  const absl::Status read = out.AddJson(*value, file, "decoder");
  if (!read.ok()) {
    return read;
  }
  return out;
}

}  // namespace millrace::model
