#include "model/checkpoint/gguf_cursor.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace::model {
namespace {

// Vocabularies are read string by string: one system call per MiB, not per
// string.
constexpr int64_t kWindowBytes = 1 << 20;

}  // namespace

absl::Status GgufCursor::Error(absl::string_view what) const {
  return InputError(Printable(file_.path(), 512),
                    absl::StrCat(subject_, ": ", what));
}

absl::Status GgufCursor::Fill(char* out, int64_t bytes) {
  if (bytes > remaining()) {
    return WithHint(
        Error(absl::StrCat("needs ", Counted(bytes, "byte"), " at ", position_,
                           ", the file ends at ", file_.size())),
        "the file is cut short or damaged: copy or download it again");
  }
  while (bytes > 0) {
    const int64_t window_end =
        window_begin_ + static_cast<int64_t>(window_.size());
    if (position_ < window_begin_ || position_ >= window_end) {
      window_.resize(static_cast<size_t>(std::min(kWindowBytes, remaining())));
      window_begin_ = position_;
      MILLRACE_RETURN_IF_ERROR(file_.Read(
          position_,
          absl::MakeSpan(reinterpret_cast<std::byte*>(window_.data()),
                         window_.size())));
      continue;
    }
    const int64_t step = std::min(bytes, window_end - position_);
    std::memcpy(out, window_.data() + (position_ - window_begin_),
                static_cast<size_t>(step));
    out += step;
    bytes -= step;
    position_ += step;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> GgufCursor::U32() {
  uint32_t value = 0;
  MILLRACE_RETURN_IF_ERROR(Fill(reinterpret_cast<char*>(&value), 4));
  return value;
}

absl::StatusOr<uint64_t> GgufCursor::U64() {
  uint64_t value = 0;
  MILLRACE_RETURN_IF_ERROR(Fill(reinterpret_cast<char*>(&value), 8));
  return value;
}

absl::StatusOr<std::string> GgufCursor::Raw(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(remaining())) {
    return WithHint(
        Error(absl::StrCat("says ", bytes, " bytes follow, the file has ",
                           remaining(), " left")),
        "the file is cut short or damaged: copy or download it again");
  }
  std::string out(static_cast<size_t>(bytes), '\0');
  MILLRACE_RETURN_IF_ERROR(Fill(out.data(), static_cast<int64_t>(bytes)));
  return out;
}

absl::StatusOr<std::string> GgufCursor::String(uint64_t bytes_max) {
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t bytes, U64());
  if (bytes > bytes_max) {
    return Error(absl::StrCat("a string of ", bytes, " bytes, more than the ",
                              bytes_max, " allowed"));
  }
  return Raw(bytes);
}

}  // namespace millrace::model
