// Judgments of what nodes answer, each good answer beside one that is wrong in
// one thing; a failed one always has a reason and a remedy.
#include "cli/check/findings.h"

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;

NodeAnswer Answer(const std::string& name, const std::string& address) {
  NodeAnswer answer;
  answer.address = address;
  control::NodeDescription node;
  node.name = name;
  node.version = "0.1.0";
  node.wire_version = 1;
  node.memory_available_bytes = 600;
  node.resident_bytes = 400;
  answer.description = node;
  return answer;
}

NodeAnswer Absent(const std::string& address) {
  NodeAnswer answer;
  answer.address = address;
  answer.description =
      MakeError(absl::StatusCode::kUnavailable, address, "nobody there");
  return answer;
}

CheckedPlan Plan() {
  CheckedPlan plan;
  plan.model_digest = "0123456789abcdef";
  plan.stages = {{"a", 1000}, {"b", 1000}};
  return plan;
}

void ExpectBad(const Finding& finding, const std::string& word) {
  EXPECT_FALSE(finding.ok) << finding.why;
  EXPECT_THAT(finding.why, HasSubstr(word));
  EXPECT_FALSE(finding.hint.empty());
}

TEST(FindingsTest, EveryStageNeedsExactlyOneNodeOfItsName) {
  std::map<std::string, const NodeAnswer*> by_name;
  std::vector<NodeAnswer> answers = {Answer("b", "h:2"), Answer("a", "h:1"),
                                     Answer("spare", "h:3")};
  std::vector<Finding> findings = JudgeReachable(Plan(), answers, by_name);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_TRUE(findings[0].ok && findings[1].ok);
  EXPECT_EQ(by_name.at("a"), &answers[1]);

  by_name.clear();
  answers = {Answer("a", "h:1"), Answer("a", "h:2"), Absent("h:3")};
  findings = JudgeReachable(Plan(), answers, by_name);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].node, "h:3");
  ExpectBad(findings[0], "nobody there");
  ExpectBad(findings[1], "both have this name");
  ExpectBad(findings[2], "no node of this name");
  EXPECT_TRUE(by_name.empty());
}

TEST(FindingsTest, VersionsAreEqual) {
  const control::NodeDescription node = *Answer("a", "h:1").description;
  EXPECT_TRUE(JudgeVersion("a", node, "0.1.0", 1).ok);
  ExpectBad(JudgeVersion("a", node, "0.2.0", 1), "0.2.0");
  ExpectBad(JudgeVersion("a", node, "0.1.0", 2), "protocol 2");
}

TEST(FindingsTest, ClocksAgreeAsFarAsCanBeTold) {
  NodeAnswer answer = Answer("a", "h:1");
  answer.clock_offset = absl::Milliseconds(-900);
  EXPECT_TRUE(JudgeClock("a", answer).ok);
  answer.clock_offset = absl::Seconds(-1.5);
  ExpectBad(JudgeClock("a", answer), "-1.500 s");
  answer.clock_doubt = absl::Seconds(0.6);
  EXPECT_TRUE(JudgeClock("a", answer).ok);
}

TEST(FindingsTest, MemoryIsWhatIsFreeAndWhatTheProcessHas) {
  control::NodeDescription node = *Answer("a", "h:1").description;
  EXPECT_TRUE(JudgeMemory({"a", 1000}, node).ok);
  ExpectBad(JudgeMemory({"a", 1001}, node), "1.00 kB");
  node.memory_bytes = 1000;
  EXPECT_THAT(JudgeMemory({"a", 1001}, node).hint, HasSubstr("--memory"));
  node.memory_available_bytes = INT64_MAX;
  EXPECT_TRUE(JudgeMemory({"a", INT64_MAX}, node).ok);
}

TEST(FindingsTest, TheModelIsThePlans) {
  EXPECT_TRUE(
      JudgeModel("a", Plan(), control::ModelDescription{"0123456789abcdef"})
          .ok);
  ExpectBad(JudgeModel("a", Plan(), control::ModelDescription{"ff"}), "ff");
  ExpectBad(JudgeModel("a", Plan(), InputError("m.gguf", "is missing")),
            "m.gguf: is missing");
}

TEST(FindingsTest, LinksDoWhatThePlanCountsWith) {
  const transport::LinkRounds rounds = {.bandwidth_out = {3e9, 1e9, 2e9},
                                        .bandwidth_in = {4e9, 4e9, 4e9},
                                        .latency_s = {1e-3, 1e-3, 9e-3}};
  EXPECT_TRUE(JudgeLink({"a", "b", {}, {}}, rounds).ok);
  EXPECT_TRUE(JudgeLink({"a", "b", 4e9, 5e-4}, rounds).ok);
  ExpectBad(JudgeLink({"a", "b", 4.1e9, {}}, rounds), "4.10 GB/s");
  ExpectBad(JudgeLink({"a", "b", {}, 3.9e-4}, rounds), "latency");
  ExpectBad(
      JudgeLink({"a", "b", {}, {}}, absl::DeadlineExceededError("too late")),
      "too late");
}

// A digest is of samples: who reads "good" should know.
TEST(FindingsTest, AModelThatIsGoodSaysWhatWasRead) {
  const Finding finding =
      JudgeModel("a", Plan(), control::ModelDescription{"0123456789abcdef"});
  EXPECT_TRUE(finding.ok);
  EXPECT_THAT(finding.why, HasSubstr("samples"));
  EXPECT_THAT(finding.why, HasSubstr("inspect --verify"));
}

TEST(FindingsTest, TheVerdictNamesWhatFailed) {
  Finding good;
  good.name = "clock";
  Finding bad = good;
  bad.ok = false;
  bad.node = "b";
  EXPECT_EQ(VerdictOf({good, good}), "all 2 checks are good");
  EXPECT_EQ(VerdictOf({good, bad}), "1 of 2 checks failed: clock of b");
  EXPECT_EQ(VerdictOf({bad, bad, bad, bad, good}),
            "4 of 5 checks failed: clock of b, clock of b, clock of b and 1 "
            "more");
}

}  // namespace
}  // namespace millrace::cli
