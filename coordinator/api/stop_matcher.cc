#include "coordinator/api/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace millrace::coordinator {

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    Automaton automaton{.stop = stop,
                        .fallback = std::vector<int64_t>(stop.size() + 1, 0)};
    int64_t border = 0;
    for (size_t i = 1; i < stop.size(); ++i) {
      while (border > 0 && stop[i] != stop[static_cast<size_t>(border)]) {
        border = automaton.fallback[static_cast<size_t>(border)];
      }
      border += stop[i] == stop[static_cast<size_t>(border)] ? 1 : 0;
      automaton.fallback[i + 1] = border;
    }
    automata_.push_back(std::move(automaton));
  }
}

void StopMatcher::Step(char letter) {
  ++total_;
  for (Automaton& automaton : automata_) {
    const auto at = [&] { return static_cast<size_t>(automaton.length); };
    while (automaton.length > 0 && automaton.stop[at()] != letter) {
      automaton.length = automaton.fallback[at()];
    }
    automaton.length += automaton.stop[at()] == letter ? 1 : 0;
    if (at() == automaton.stop.size()) {
      const int64_t begin = total_ - automaton.length;
      match_begin_ = match_begin_ < 0 ? begin : std::min(match_begin_, begin);
      automaton.length = automaton.fallback[at()];
    }
  }
}

std::string StopMatcher::Cut() {
  matched_ = true;
  held_.resize(static_cast<size_t>(match_begin_ - released_));
  released_ = match_begin_;
  return std::exchange(held_, std::string());
}

std::string StopMatcher::Append(absl::string_view text) {
  if (matched_) {
    return "";
  }
  if (automata_.empty()) {
    return std::string(text);
  }
  int64_t pending = total_;  // where the earliest unfinished one would begin
  for (const char letter : text) {
    held_.push_back(letter);
    Step(letter);
    pending = total_;
    for (const Automaton& automaton : automata_) {
      pending = std::min(pending, total_ - automaton.length);
    }
    // One that began earlier may still become complete and win.
    if (match_begin_ >= 0 && pending >= match_begin_) {
      return Cut();
    }
  }
  if (text.empty()) {
    return "";
  }
  const int64_t safe =
      match_begin_ >= 0 ? std::min(pending, match_begin_) : pending;
  std::string out = held_.substr(0, static_cast<size_t>(safe - released_));
  held_.erase(0, out.size());
  released_ = safe;
  return out;
}

std::string StopMatcher::Finish() {
  if (!matched_ && match_begin_ >= 0) {
    return Cut();
  }
  return std::exchange(held_, std::string());
}

}  // namespace millrace::coordinator
