#include "model/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/component_json.h"

namespace millrace::model {
namespace {

using Behavior = PreTokenizer::Behavior;

struct Part {
  Span span;
  bool is_match;
};

// The word as matches and what lies between, in order.
std::vector<Part> PartsOf(Span word, const std::vector<Span>& matches,
                          bool invert) {
  std::vector<Part> out;
  out.reserve(2 * matches.size() + 1);
  size_t done = word.begin;
  for (const Span& match : matches) {
    if (match.begin > done) {
      out.push_back({{done, match.begin}, invert});
    }
    out.push_back({match, !invert});
    done = match.end;
  }
  if (done < word.end) {
    out.push_back({{done, word.end}, invert});
  }
  return out;
}

// Joins a match to the part in front of it, unless that is a match itself.
void MergeWithPrevious(const std::vector<Part>& parts, std::vector<Span>* out) {
  bool previous_match = false;
  bool any = false;
  for (const Part& part : parts) {
    if (part.is_match && !previous_match && any) {
      out->back().end = part.span.end;
    } else {
      out->push_back(part.span);
    }
    any = true;
    previous_match = part.is_match;
  }
}

void MergeWithNext(const std::vector<Part>& parts, std::vector<Span>* out) {
  const auto first = static_cast<std::ptrdiff_t>(out->size());
  bool previous_match = false;
  bool any = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !previous_match && any) {
      out->back().begin = part->span.begin;
    } else {
      out->push_back(part->span);
    }
    any = true;
    previous_match = part->is_match;
  }
  std::reverse(out->begin() + first, out->end());
}

void Contiguous(const std::vector<Part>& parts, std::vector<Span>* out) {
  const Part* previous = nullptr;
  for (const Part& part : parts) {
    if (previous != nullptr && previous->is_match == part.is_match) {
      out->back().end = part.span.end;
    } else {
      out->push_back(part.span);
    }
    previous = &part;
  }
}

void ApplyBehavior(Behavior behavior, const std::vector<Part>& parts,
                   std::vector<Span>* out) {
  switch (behavior) {
    case Behavior::kRemoved:
      for (const Part& part : parts) {
        if (!part.is_match) {
          out->push_back(part.span);
        }
      }
      return;
    case Behavior::kIsolated:
      for (const Part& part : parts) {
        out->push_back(part.span);
      }
      return;
    case Behavior::kMergedWithPrevious:
      return MergeWithPrevious(parts, out);
    case Behavior::kMergedWithNext:
      return MergeWithNext(parts, out);
    case Behavior::kContiguous:
      return Contiguous(parts, out);
  }
}

absl::string_view WordAt(const Words& words, const Span& span) {
  return absl::string_view(words.text)
      .substr(span.begin, span.end - span.begin);
}

}  // namespace

void PreTokenizer::AddSplit(std::unique_ptr<Pattern> pattern, Behavior behavior,
                            bool invert) {
  steps_.push_back({.kind = Kind::kSplit,
                    .pattern = std::move(pattern),
                    .behavior = behavior,
                    .invert = invert});
}

void PreTokenizer::AddByteLevel(bool add_prefix_space, bool use_regex) {
  if (add_prefix_space) {
    steps_.push_back({.kind = Kind::kPrefixSpace});
  }
  if (use_regex) {
    AddSplit(RulesPattern(RulesOf(KnownPattern::kGpt2)), Behavior::kIsolated,
             false);
  }
  steps_.push_back({.kind = Kind::kAlphabet});
  byte_level_ = true;
}

absl::Status PreTokenizer::Apply(Words* words) const {
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kSplit:
        MILLRACE_RETURN_IF_ERROR(Split(step, words));
        break;
      case Kind::kPrefixSpace:
        PrefixSpace(words);
        break;
      case Kind::kAlphabet:
        ToAlphabet(words);
        break;
      case Kind::kMetaspace:
        Metaspace(step, words);
        break;
    }
  }
  return absl::OkStatus();
}

absl::Status PreTokenizer::Split(const Step& step, Words* words) {
  std::vector<Span> out;
  out.reserve(words->spans.size());
  std::vector<Span> matches;
  for (const Span& word : words->spans) {
    matches.clear();
    MILLRACE_RETURN_IF_ERROR(
        step.pattern->FindAll(words->text, word, &matches));
    if (step.behavior == Behavior::kIsolated && matches.size() == 1 &&
        matches[0] == word) {
      out.push_back(word);
      continue;
    }
    ApplyBehavior(step.behavior, PartsOf(word, matches, step.invert), &out);
  }
  words->spans = std::move(out);
  return absl::OkStatus();
}

void PreTokenizer::PrefixSpace(Words* words) {
  std::string text;
  for (Span& span : words->spans) {
    const absl::string_view word = WordAt(*words, span);
    const size_t begin = text.size();
    if (!absl::StartsWith(word, " ")) {
      text.push_back(' ');
    }
    text.append(word.data(), word.size());
    span = {begin, text.size()};
  }
  words->text = std::move(text);
}

void PreTokenizer::ToAlphabet(Words* words) {
  std::string text;
  text.reserve(2 * words->text.size());
  for (Span& span : words->spans) {
    const size_t begin = text.size();
    AppendAsAlphabet(WordAt(*words, span), &text);
    span = {begin, text.size()};
  }
  words->text = std::move(text);
}

void PreTokenizer::Metaspace(const Step& step, Words* words) {
  std::string text;
  std::vector<Span> spans;
  for (size_t i = 0; i < words->spans.size(); ++i) {
    const std::string word = absl::StrReplaceAll(
        WordAt(*words, words->spans[i]), {{" ", step.replacement}});
    const size_t begin = text.size();
    const bool first = i == 0 && words->at_start && words->spans[0].begin == 0;
    if (!absl::StartsWith(word, step.replacement) &&
        (step.prepend == Prepend::kAlways ||
         (step.prepend == Prepend::kFirst && first))) {
      text.append(step.replacement);
    }
    text.append(word);
    spans.push_back({begin, text.size()});
  }
  words->text = std::move(text);
  words->spans = std::move(spans);
}

absl::StatusOr<PreTokenizer> PreTokenizer::FromJson(const Json* value,
                                                    absl::string_view file) {
  PreTokenizer out;
  if (value != nullptr) {
    MILLRACE_RETURN_IF_ERROR(out.AddJson(*value, file, "pre_tokenizer"));
  }
  return out;
}

}  // namespace millrace::model
