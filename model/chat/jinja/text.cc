#include "model/chat/jinja/text.h"

#include <algorithm>

namespace millrace::model::jinja {

void Text::ExtendRun(bool untrusted) {
  if (!runs_.empty() && runs_.back().untrusted == untrusted) {
    runs_.back().end = size();
  } else {
    runs_.push_back({size(), untrusted});
  }
}

void Text::Append(absl::string_view bytes, bool untrusted) {
  if (bytes.empty()) {
    return;
  }
  bytes_.append(bytes.data(), bytes.size());
  ExtendRun(untrusted);
}

size_t Text::RunAt(int64_t offset) const {
  const auto after = [](int64_t at, const Run& run) { return at < run.end; };
  return static_cast<size_t>(
      std::upper_bound(runs_.begin(), runs_.end(), offset, after) -
      runs_.begin());
}

void Text::Append(const Text& other, int64_t begin, int64_t end) {
  if (begin >= end) {
    return;
  }
  for (size_t i = other.RunAt(begin); begin < end; ++i) {
    const Run run = other.runs_[i];
    const int64_t stop = std::min(run.end, end);
    Append(other.bytes().substr(static_cast<size_t>(begin),
                                static_cast<size_t>(stop - begin)),
           run.untrusted);
    begin = stop;
  }
}

void Text::AppendMapped(absl::string_view bytes, const Text& source,
                        int64_t begin, int64_t end) {
  Append(bytes, source.AnyUntrusted(begin, end));
}

Text Text::Sub(int64_t begin, int64_t end) const {
  Text out;
  out.Append(*this, begin, end);
  return out;
}

bool Text::AnyUntrusted(int64_t begin, int64_t end) const {
  if (begin >= end) {
    return false;
  }
  // Neighbouring runs differ, so that two of them always hold an untrusted one.
  const size_t first = RunAt(begin);
  return runs_[first].untrusted || runs_[first].end < end;
}

int64_t Text::memory_bytes() const {
  return static_cast<int64_t>(bytes_.capacity() +
                              runs_.capacity() * sizeof(Run));
}

}  // namespace millrace::model::jinja
