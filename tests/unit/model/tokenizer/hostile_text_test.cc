// Time is nearly linear in the text: four times a hostile text takes no more
// than ten times as long, where a quadratic step would take sixteen times and,
// at these lengths, minutes. Several threads get the same ids.
#include <time.h>

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/model/tokenizer/tiny.h"

namespace millrace::model {
namespace {

// CPU time of this thread: other work on the machine does not count.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

std::string Repeated(absl::string_view unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) {
    out.append(unit.data(), unit.size());
  }
  return out;
}

double EncodeSeconds(const Tokenizer& tokenizer, const std::string& text) {
  const double start = CpuSeconds();
  const auto ids = tokenizer.Encode(text, AddedTokenMode::kParseSpecial, false);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return CpuSeconds() - start;
}

TEST(HostileText, TakesTimeInProportion) {
  // Letters, blanks, line ends, alternating junk, marks out of order, almost
  // control tokens, case changes, bytes that are no text.
  const char* units[] = {
      "a",    " ",     "\n",        " \n",          "\t ",    "a1 !",
      "'",    "<",     "<|im_star", "\u0301\u0316", "\u4e2d", "\u00aaA",
      "\xFF", "\r\n ", "A",         "Aa",           "it ",    "\u2581"};
  constexpr size_t kBytes = 40'000;
  for (const char* file :
       {"tiny-bytebpe.json", "tiny-flags.json", "tiny-spm.gguf"}) {
    const auto tokenizer = Tiny(file);
    for (const char* unit : units) {
      const double once = EncodeSeconds(*tokenizer, Repeated(unit, kBytes));
      const double four = EncodeSeconds(*tokenizer, Repeated(unit, 4 * kBytes));
      EXPECT_LT(four, 10 * once + 0.1) << file << " '" << unit << "'";
      // A run of blanks that something else follows is cut differently.
      EXPECT_LT(EncodeSeconds(*tokenizer, Repeated(unit, kBytes) + "x"),
                10 * once + 0.1);
    }
  }
}

TEST(HostileText, ThreadsGetTheSameIds) {
  const auto tokenizer = Tiny("tiny-flags.json");
  const std::string text = Repeated(
      "It's <think> d\u00e9j\u00e0 e\u0301 123 \u4e2d\u6587-x, y;\n", 20'000);
  const auto expected =
      tokenizer->Encode(text, AddedTokenMode::kPlain, true).value();
  std::vector<std::vector<TokenId>> ids(4);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& out : ids) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        out = tokenizer->Encode(text, AddedTokenMode::kPlain, true).value();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::vector<TokenId>& out : ids) {
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace millrace::model
