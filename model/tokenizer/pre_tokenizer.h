#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/tokenizer/pattern.h"

namespace millrace::model {

// Text cut into words: ranges of `text`, none empty.
struct Words {
  std::string text;
  std::vector<Span> spans;
  bool at_start = false;  // text begins where the whole input does
};

// Cuts normalised text into the words that the model encodes each by itself.
// Immutable once built; any thread.
class PreTokenizer {
 public:
  enum class Behavior {
    kRemoved,
    kIsolated,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,
  };

  // The `pre_tokenizer` of a tokenizer.json; null means none. A component that
  // is not supported is an InputError with its name.
  static absl::StatusOr<PreTokenizer> FromJson(const Json* value,
                                               absl::string_view file);

  PreTokenizer() = default;
  void AddSplit(std::unique_ptr<Pattern> pattern, Behavior behavior,
                bool invert);
  // Bytes to the byte alphabet, after an optional split like GPT-2's.
  void AddByteLevel(bool add_prefix_space, bool use_regex);

  // Whether words come out in the byte alphabet.
  [[nodiscard]] bool byte_level() const { return byte_level_; }

  // Cuts the one word that `words` holds at first. Errors are Pattern's.
  [[nodiscard]] absl::Status Apply(Words* words) const;

 private:
  enum class Kind { kSplit, kPrefixSpace, kAlphabet, kMetaspace };
  enum class Prepend { kAlways, kFirst, kNever };
  struct Step {
    Kind kind;
    std::unique_ptr<Pattern> pattern{};  // of kSplit
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    std::string replacement{};  // of kMetaspace
    Prepend prepend = Prepend::kAlways;
  };

  absl::Status AddJson(const Json& value, absl::string_view file,
                       absl::string_view path);
  absl::Status AddMetaspace(const JsonObject& object);
  static absl::Status Split(const Step& step, Words* words);
  static void PrefixSpace(Words* words);
  static void ToAlphabet(Words* words);
  static void Metaspace(const Step& step, Words* words);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace millrace::model
