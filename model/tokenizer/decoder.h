#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {

// How strings of tokens become text: a chain of steps, each of which takes
// strings from the one before. Immutable once built; any thread.
class Decoder {
 public:
  // The `decoder` of a tokenizer.json; null: tokens are joined by blanks. A
  // component that is not supported is an InputError with its name.
  static absl::StatusOr<Decoder> FromJson(const Json* value,
                                          absl::string_view file);

  Decoder() = default;
  void AddByteLevel();
  void AddReplace(absl::string_view from, absl::string_view to);
  void AddByteFallback();
  void AddFuse();
  // Up to `start` times `content`, one character, at the front of each string;
  // after Fuse or ByteLevel that is the front of the whole text.
  void AddStrip(absl::string_view content, int64_t start);

  // What one token gives in running text, where nothing is stripped.
  [[nodiscard]] std::string TokenBytes(absl::string_view token) const;

 private:
  friend class DecodeRun;

  enum class Kind {
    kJoinByBlanks,
    kByteLevel,
    kReplace,
    kByteFallback,
    kFuse,
    kStrip,
    kMetaspace,
  };
  struct Step {
    Kind kind;
    std::string from{};       // of kReplace, kStrip, kMetaspace
    std::string to{};         // of kReplace
    int64_t start = 0;        // of kStrip
    bool drop_first = false;  // of kMetaspace
    bool whole_text = false;  // strings that come in are parts of one text
  };

  absl::Status AddJson(const Json& value, absl::string_view file,
                       absl::string_view path);
  absl::Status AddJsonStep(const JsonObject& object, const std::string& type);
  void Add(Step step);

  std::vector<Step> steps_;
};

// One text being decoded, token by token; borrows the decoder. One thread.
class DecodeRun {
 public:
  explicit DecodeRun(const Decoder& decoder);

  // Appends to `out` the text that is certain after this token.
  void Append(absl::string_view token, std::string* out);
  // What was held back. The run is over.
  void Finish(std::string* out);

 private:
  struct State {
    LossyUtf8 bytes;    // of kByteLevel
    std::string run;    // of kByteFallback: the bytes in a row so far
    int64_t left = 0;   // of kStrip on a whole text: how many may still go
    bool first = true;  // of kJoinByBlanks, kMetaspace
  };

  void Feed(size_t step, absl::string_view text, std::string* out);
  void FlushBytes(size_t step, std::string* out);
  [[nodiscard]] std::string Strip(size_t step, absl::string_view text);
  [[nodiscard]] std::string Metaspace(size_t step, absl::string_view text);

  const Decoder& decoder_;
  std::vector<State> states_;
};

}  // namespace millrace::model
