#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace millrace::cli {

// Where a command's output goes. Main thread, but for Note and Progress, which
// any thread may call.
class Console {
 public:
  explicit Console(bool json);

  // Whether --json was given: exactly one document on stdout, or one a line.
  [[nodiscard]] bool json() const { return json_; }
  // Whether people read stdout / stderr: progress bars and color only then;
  // NO_COLOR is respected.
  [[nodiscard]] bool out_is_terminal() const { return out_is_terminal_; }
  [[nodiscard]] bool err_is_terminal() const { return err_is_terminal_; }
  [[nodiscard]] bool color() const { return color_; }

  // Result bytes to stdout, as they are, unbuffered. Once they could not be
  // written the rest is dropped and OutStatus says why.
  void Out(absl::string_view bytes);
  // One JSON document and a line feed to stdout.
  void OutJson(const Json& document);
  // What a server says while it runs. Whoever started it may read on or not.
  void Announce(absl::string_view bytes);
  void AnnounceJson(const Json& document);
  // OK while all of the result is out. Where its reader has gone, as `head`
  // does once it has enough, the error is kAborted; a full disk is another one.
  [[nodiscard]] absl::Status OutStatus() const;
  // One line to stderr, for people.
  void Note(absl::string_view line);
  // The same of what the result must be read with; nothing for an empty text.
  void Warn(absl::string_view warning);
  // Replaces the progress line on a terminal; nothing elsewhere. An empty text
  // removes it.
  void Progress(absl::string_view text);

  // The error in the two forms of the contract: `millrace: error: OBJECT: WHAT`
  // and `hint: ...` on stderr; with --json also {"error": ...} on stdout,
  // unless the answer is no and the document that says so has been written.
  void Error(const absl::Status& status);

 private:
  const bool json_;
  const bool out_is_terminal_;
  const bool err_is_terminal_;
  const bool color_;
  bool answered_ = false;  // a JSON document has been written
  int out_errno_ = 0;      // of the first write to stdout that failed
};

// {"code", "message", "object", "hint"} of an error.
Json ErrorJson(const absl::Status& status);

}  // namespace millrace::cli
