#include "coordinator/simulation/load_files.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/coordinator/simulation/simulated_cases.h"

namespace millrace::coordinator {
namespace {

using testing::HasSubstr;

std::string TraceError(const std::string& text) {
  const auto trace = ParseTrace(text, "t.jsonl");
  EXPECT_FALSE(trace.ok()) << text;
  EXPECT_EQ(KindOf(trace.status()), ErrorKind::kInput) << text;
  EXPECT_THAT(HintOf(trace.status()), HasSubstr("input_length")) << text;
  return std::string(trace.status().message());
}

TEST(ParseTrace, ReadsSortsAndShifts) {
  const auto trace = ParseTrace(
      "{\"timestamp\": 3000, \"input_length\": 7, \"output_length\": 2, "
      "\"hash_ids\": [1, 2], \"type\": {\"a\": null}}\n"
      "\r\n"
      "{\"timestamp\": 1000.5, \"input_length\": 5, \"output_length\": 1}",
      "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].input_tokens, 5);
  EXPECT_EQ((*trace)[0].at, absl::ZeroDuration());
  EXPECT_EQ((*trace)[1].at, absl::Milliseconds(1999.5));
  EXPECT_EQ((*trace)[1].output_tokens, 2);
}

// As of one stable sort, also beyond what is sorted at once.
TEST(ParseTrace, SortsManyLines) {
  std::string text;
  constexpr int64_t kLines = 270'000;
  for (int64_t i = 0; i < kLines; ++i) {
    absl::StrAppend(&text, "{\"timestamp\":", (i * 7919) % 1000,
                    ",\"input_length\":", i + 1, ",\"output_length\":1}\n");
  }
  const auto trace = ParseTrace(text, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), static_cast<size_t>(kLines));
  for (size_t i = 1; i < trace->size(); ++i) {
    const TraceEntry& before = (*trace)[i - 1];
    const TraceEntry& here = (*trace)[i];
    ASSERT_TRUE(
        before.at < here.at ||
        (before.at == here.at && before.input_tokens < here.input_tokens));
  }
}

// Whoever reads is asked again and again, while lines are read and sorted.
TEST(ParseTrace, CanBeInterrupted) {
  const std::string text =
      "{\"timestamp\": 5, \"input_length\": 5, \"output_length\": 1}\n"
      "{\"timestamp\": 4, \"input_length\": 5, \"output_length\": 1}\n";
  int asked = 0;
  const auto until = [&asked](int most) {
    asked = 0;
    return [&asked, most]() { return ++asked < most; };
  };
  EXPECT_TRUE(ParseTrace(text, "t", until(100)).ok());
  const int all = asked;
  EXPECT_EQ(all, 3);  // two lines, one block
  for (int most = 1; most <= all; ++most) {
    EXPECT_TRUE(absl::IsCancelled(ParseTrace(text, "t", until(most)).status()));
  }
}

// Every damage names the file, the line and, where there is one, the key.
TEST(ParseTrace, DamageIsNamed) {
  const std::string good =
      "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n";
  for (const char* line : {
           "{\"timestamp\": 1, \"input_length\": 5",
           "[1, 2, 3]",
           "nonsense",
           "{\"timestamp\": 1, \"timestamp\": 2, \"input_length\": 5, "
           "\"output_length\": 1}",
           "\xff\xfe",
       }) {
    EXPECT_THAT(TraceError(good + line), HasSubstr("t.jsonl: line 2")) << line;
  }
  struct Case {
    const char* line;
    const char* key;
  };
  for (const Case& one : std::vector<Case>{
           {"{\"input_length\": 5, \"output_length\": 1}", "timestamp"},
           {"{\"timestamp\": 1, \"output_length\": 1}", "input_length"},
           {"{\"timestamp\": -1, \"input_length\": 5, \"output_length\": 1}",
            "timestamp"},
           {"{\"timestamp\": 1e999, \"input_length\": 5, \"output_length\": 1}",
            "line 2"},
           {"{\"timestamp\": 1, \"input_length\": 0, \"output_length\": 1}",
            "input_length"},
           {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1.5}",
            "output_length"},
           {"{\"timestamp\": 1, \"input_length\": 5, "
            "\"output_length\": 9999999999}",
            "output_length"},
       }) {
    EXPECT_THAT(TraceError(good + one.line), HasSubstr(one.key)) << one.line;
    EXPECT_THAT(TraceError(good + one.line), HasSubstr("line 2")) << one.line;
  }
  EXPECT_THAT(TraceError(""), HasSubstr("no request"));
  EXPECT_THAT(TraceError(good + "{\"timestamp\": 1e14, \"input_length\": 5, "
                                "\"output_length\": 1}"),
              HasSubstr("year"));
}

TEST(ParseFaults, ReadsEachKind) {
  SimulatedPipeline pipeline = PipelineOf({1, 1, 1});
  const auto faults = ParseFaults(
      "{\"at\": \"2s\", \"kind\": \"lost\", \"node\": \"n1\"}\n"
      "{\"at\": 1.5, \"kind\": \"slow\", \"node\": \"n0\", \"factor\": 2.5}\n"
      "{\"at\": \"10ms\", \"kind\": \"cut\", \"between\": [\"n2\", \"n1\"]}\n"
      "{\"at\": 3, \"kind\": \"back\", \"between\": [\"n2\", \"n0\"]}\n"
      "{\"at\": 3, \"kind\": \"stalled\", \"node\": \"n2\"}\n",
      "f", pipeline);
  ASSERT_TRUE(faults.ok()) << faults.status();
  ASSERT_EQ(faults->size(), 5U);
  EXPECT_EQ((*faults)[0].at, absl::Milliseconds(10));
  EXPECT_EQ((*faults)[0].kind, FaultKind::kCut);
  EXPECT_EQ((*faults)[0].node, 2);
  EXPECT_EQ((*faults)[0].other, 1);
  EXPECT_EQ((*faults)[1].factor, 2.5);
  EXPECT_EQ((*faults)[2].kind, FaultKind::kLost);
  // Tokens go back from the last node to the first.
  EXPECT_EQ((*faults)[3].other, 0);
  EXPECT_EQ((*faults)[4].kind, FaultKind::kStalled);
}

TEST(ParseFaults, DamageIsNamed) {
  SimulatedPipeline pipeline = PipelineOf({1, 1, 1, 1});
  struct Case {
    const char* line;
    const char* key;
  };
  for (const Case& one : std::vector<Case>{
           {R"({"kind": "lost", "node": "n1"})", "at"},
           {R"({"at": -1, "kind": "lost", "node": "n1"})", "at"},
           {R"({"at": "soon", "kind": "lost", "node": "n1"})", "at"},
           {R"({"at": "9999999h", "kind": "lost", "node": "n1"})", "at"},
           {R"({"at": true, "kind": "lost", "node": "n1"})", "at"},
           {R"({"at": 1, "node": "n1"})", "kind"},
           {R"({"at": 1, "kind": "gone", "node": "n1"})", "kind"},
           {R"({"at": 1, "kind": "lost"})", "node"},
           {R"({"at": 1, "kind": "lost", "node": "n9"})", "n9"},
           {R"({"at": 1, "kind": "lost", "node": 3})", "node"},
           {R"({"at": 1, "kind": "cut", "node": "n1"})", "node"},
           {R"({"at": 1, "kind": "lost", "between": ["n0", "n1"]})", "between"},
           {R"({"at": 1, "kind": "cut", "between": ["n0", "n2"]})", "between"},
           {R"({"at": 1, "kind": "cut", "between": ["n0", "n0"]})", "between"},
           {R"({"at": 1, "kind": "cut", "between": ["n0"]})", "between"},
           {R"({"at": 1, "kind": "cut", "between": [0, 1]})", "between"},
           {R"({"at": 1, "kind": "cut", "between": "n0"})", "between"},
           {R"({"at": 1, "kind": "cut", "node": "n0", "between": ["n0",
               "n1"]})",
            "line 1"},
           {R"({"at": 1, "kind": "slow", "node": "n1"})", "factor"},
           {R"({"at": 1, "kind": "slow", "node": "n1", "factor": 0})",
            "factor"},
           {R"({"at": 1, "kind": "lost", "node": "n1", "factor": 2})",
            "factor"},
           {R"({"at": 1, "kind": "lost", "node": "n1", "colour": 2})",
            "colour"},
       }) {
    const auto faults = ParseFaults(one.line, "f.jsonl", pipeline);
    ASSERT_FALSE(faults.ok()) << one.line;
    EXPECT_EQ(KindOf(faults.status()), ErrorKind::kInput) << one.line;
    EXPECT_THAT(HintOf(faults.status()), HasSubstr("kind")) << one.line;
    EXPECT_THAT(std::string(faults.status().message()), HasSubstr(one.key));
    EXPECT_THAT(std::string(faults.status().message()),
                HasSubstr("f.jsonl: line 1"));
  }
}

}  // namespace
}  // namespace millrace::coordinator
