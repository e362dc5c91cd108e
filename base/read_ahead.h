#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

// Memory that one thread will read soon, listed by another. The reader asks for
// it while it has nothing else to do, so that it lies in the second-level cache
// when its work begins. Only advice: addresses are never read, and a list that
// is replaced while it is gone through costs useless requests at worst.
class ReadAhead {
 public:
  struct Piece {
    const std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  static constexpr size_t kPiecesMost = 4;

  // Replaces the list by the first kPiecesMost of `pieces`. One writer.
  void Set(std::span<const Piece> pieces);

  // Reader only. Asks for the next few lines of the list; false where none is
  // left. Takes about as long as memory takes for them.
  bool AskSome();

 private:
  // version_ publishes the pieces (release by Set, acquire by AskSome).
  std::atomic<uint32_t> version_{0};
  std::atomic<const std::byte*> data_[kPiecesMost] = {};
  std::atomic<int64_t> bytes_[kPiecesMost] = {};

  // Reader only: how far it is in which list.
  uint32_t seen_ = 0;
  size_t piece_ = kPiecesMost;
  int64_t asked_ = 0;  // bytes of the piece
};

}  // namespace millrace
