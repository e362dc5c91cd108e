#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace millrace::coordinator {

// Finds the first of several stop strings in text that comes in pieces, and
// holds back what may still become one. "First" is the one that begins
// earliest in the whole text, however the text is cut. Time is linear
// (Knuth-Morris-Pratt, one automaton a string). One thread.
class StopMatcher {
 public:
  // Strings are not empty.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // Text that no stop string can take back any more; nothing once matched.
  std::string Append(absl::string_view text);
  // The text ends here: what was held back, up to a stop string if one is
  // complete in it.
  std::string Finish();

  [[nodiscard]] bool matched() const { return matched_; }

 private:
  struct Automaton {
    std::string stop;
    std::vector<int64_t> fallback;  // longest proper border of each prefix
    int64_t length = 0;             // of the prefix that the text ends with
  };

  void Step(char letter);
  // Ends the text in front of match_begin_.
  std::string Cut();

  std::vector<Automaton> automata_;
  std::string held_;  // bytes [released_, total_)
  int64_t released_ = 0;
  int64_t total_ = 0;
  int64_t match_begin_ = -1;  // of the earliest complete stop string
  bool matched_ = false;
};

}  // namespace millrace::coordinator
