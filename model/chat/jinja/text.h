#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace millrace::model::jinja {

// UTF-8 text in which every byte knows whether it stems from untrusted input.
// A value type; positions are byte offsets and must stand at code points.
class Text {
 public:
  // The bytes from the end of the run before up to `end`.
  struct Run {
    int64_t end;
    bool untrusted;
  };

  Text() = default;
  Text(absl::string_view bytes, bool untrusted) { Append(bytes, untrusted); }

  [[nodiscard]] absl::string_view bytes() const { return bytes_; }
  [[nodiscard]] int64_t size() const {
    return static_cast<int64_t>(bytes_.size());
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] absl::Span<const Run> runs() const { return runs_; }

  void Append(absl::string_view bytes, bool untrusted);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  // Bytes [begin, end) of `other`, with their origin.
  void Append(const Text& other, int64_t begin, int64_t end);
  // The given bytes in place of [begin, end) of `source`: untrusted when any
  // byte there is.
  void AppendMapped(absl::string_view bytes, const Text& source, int64_t begin,
                    int64_t end);
  void Reserve(int64_t size) { bytes_.reserve(static_cast<size_t>(size)); }

  [[nodiscard]] Text Sub(int64_t begin, int64_t end) const;
  [[nodiscard]] bool AnyUntrusted() const { return AnyUntrusted(0, size()); }
  [[nodiscard]] bool AnyUntrusted(int64_t begin, int64_t end) const;

  // What this text holds on the heap.
  [[nodiscard]] int64_t memory_bytes() const;

 private:
  // Index of the run that holds the byte at `offset`, which is in range.
  [[nodiscard]] size_t RunAt(int64_t offset) const;
  void ExtendRun(bool untrusted);

  std::string bytes_;
  // Ascending; neighbours differ; the last one ends at size().
  absl::InlinedVector<Run, 1> runs_;
};

}  // namespace millrace::model::jinja
