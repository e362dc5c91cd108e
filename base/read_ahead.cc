#include "base/read_ahead.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr int64_t kLineBytes = 64;
// Lines at a time: as many as memory delivers to a core in some 50 ns, so that
// a waiting thread still looks up often.
constexpr int64_t kSomeBytes = 8 * kLineBytes;
// From several pages in turn: neighbouring lines come from one part of the
// memory and wait for each other.
constexpr int64_t kPages = 4;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kWindowBytes = kPages * kPageBytes;

void AskFor(const std::byte* line) {
  constexpr int kToRead = 0;
  constexpr int kSecondLevel = 2;
  __builtin_prefetch(line, kToRead, kSecondLevel);
}

// `asked` bytes of a window have been asked for.
void AskPages(const std::byte* window, int64_t asked) {
  for (int64_t page = 0; page < kPages; ++page) {
    const std::byte* const from = window + page * kPageBytes + asked / kPages;
    for (int64_t at = 0; at < kSomeBytes / kPages; at += kLineBytes) {
      AskFor(from + at);
    }
  }
}

}  // namespace

void ReadAhead::Set(std::span<const Piece> pieces) {
  for (size_t i = 0; i < kPiecesMost; ++i) {
    const Piece piece = i < pieces.size() ? pieces[i] : Piece{};
    data_[i].store(piece.data, std::memory_order_relaxed);
    bytes_[i].store(piece.bytes, std::memory_order_relaxed);
  }
  version_.fetch_add(1, std::memory_order_release);
}

bool ReadAhead::AskSome() {
  const uint32_t version = version_.load(std::memory_order_acquire);
  if (version != seen_) {
    seen_ = version;
    piece_ = 0;
    asked_ = 0;
  }
  while (piece_ < kPiecesMost) {
    const int64_t left =
        bytes_[piece_].load(std::memory_order_relaxed) - asked_;
    if (left <= 0) {
      ++piece_;
      asked_ = 0;
      continue;
    }
    const std::byte* const data = data_[piece_].load(std::memory_order_relaxed);
    const int64_t in_window = asked_ % kWindowBytes;
    const int64_t some = std::min(left, kSomeBytes);
    if (in_window + left >= kWindowBytes) {
      AskPages(data + asked_ - in_window, in_window);
    } else {
      for (int64_t at = 0; at < some; at += kLineBytes) {
        AskFor(data + asked_ + at);
      }
    }
    asked_ += some;
    return true;
  }
  return false;
}

}  // namespace millrace
