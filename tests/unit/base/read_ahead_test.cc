#include "base/read_ahead.h"

#include <vector>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// Far more than any list below takes.
constexpr int kTurnsMost = 1000;

// Turns until nothing is left.
int CountTurns(ReadAhead& read_ahead) {
  int turns = 0;
  while (turns < kTurnsMost && read_ahead.AskSome()) {
    ++turns;
  }
  return turns;
}

// A list is gone through once, in turns that its bytes bound, and a new list
// begins at its start even where the old one was not finished.
TEST(ReadAhead, GoesThroughEveryListOnce) {
  const std::vector<std::byte> memory(1 << 16);
  ReadAhead read_ahead;
  EXPECT_FALSE(read_ahead.AskSome());

  const ReadAhead::Piece whole = {memory.data(), 1 << 16};
  read_ahead.Set({&whole, 1});
  const int turns = CountTurns(read_ahead);
  EXPECT_GT(turns, 1);
  EXPECT_LT(turns, kTurnsMost);
  EXPECT_FALSE(read_ahead.AskSome());

  read_ahead.Set({&whole, 1});
  EXPECT_TRUE(read_ahead.AskSome());
  read_ahead.Set({&whole, 1});
  EXPECT_EQ(CountTurns(read_ahead), turns);

  read_ahead.Set({});
  EXPECT_FALSE(read_ahead.AskSome());
}

// Windows are asked for page by page, what is left behind them in order: a turn
// for every half KiB, whatever the size.
TEST(ReadAhead, TakesAsManyTurnsAsItHasBytes) {
  const std::vector<std::byte> memory(1 << 16);
  for (int64_t bytes = 64; bytes <= 1 << 16; bytes += 320) {
    ReadAhead read_ahead;
    const ReadAhead::Piece piece = {memory.data(), bytes};
    read_ahead.Set({&piece, 1});
    EXPECT_EQ(CountTurns(read_ahead), (bytes + 511) / 512) << bytes;
  }
}

// Pieces follow each other, empty ones and ends of lines cost nothing but their
// turn, and what the list cannot hold is left out.
TEST(ReadAhead, TakesPiecesInTurn) {
  const std::vector<std::byte> memory(1 << 12);
  ReadAhead read_ahead;
  const ReadAhead::Piece small = {memory.data(), 1};
  std::vector<ReadAhead::Piece> pieces = {small, {}, small};
  read_ahead.Set(pieces);
  EXPECT_EQ(CountTurns(read_ahead), 2);

  pieces.assign(ReadAhead::kPiecesMost + 3, small);
  read_ahead.Set(pieces);
  EXPECT_EQ(CountTurns(read_ahead), static_cast<int>(ReadAhead::kPiecesMost));
}

}  // namespace
}  // namespace millrace
