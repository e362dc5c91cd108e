// `tokenize` answers a batch line by line, in order, an error in the place of
// the line that caused it; the ids are those of the same small vocabulary.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Outcome {
  absl::Status status;
  std::string out;
};

Outcome RunTokenize(std::vector<std::string> arguments, bool json) {
  const auto command = MakeTokenizeCommand();
  CLI::App app;
  command->Define(app);
  arguments.insert(
      arguments.begin(),
      absl::StrCat(MILLRACE_TEST_DATA_DIR, "/tokenizers/tiny-bytebpe.gguf"));
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  testing::internal::CaptureStdout();
  Console console(json);
  Outcome outcome{command->Run(console), ""};
  outcome.out = testing::internal::GetCapturedStdout();
  return outcome;
}

TEST(Tokenize, GivesIdsAndPiecesAndBack) {
  const Outcome encoded =
      RunTokenize({"--text", "do <think>", "--no-add-special"}, true);
  ASSERT_TRUE(encoded.status.ok()) << encoded.status;
  const Json document = ParseJson(encoded.out, "stdout").value();
  const auto& ids = document.at("ids").as_array();
  ASSERT_EQ(ids.size(), document.at("pieces").as_array().size());
  EXPECT_EQ(document.at("pieces").as_array().back().as_string(), "<think>");
  std::string list;
  for (const Json& id : ids) {
    absl::StrAppend(&list, list.empty() ? "" : ",", id.as_int64());
  }
  EXPECT_EQ(RunTokenize({"--decode", list}, true).out,
            "{\"text\":\"do <think>\"}\n");
  EXPECT_EQ(RunTokenize({"--decode", list}, false).out, "do <think>");
}

TEST(Tokenize, AnswersABatchLineByLine) {
  const std::string path = testing::TempDir() + "/tokenize_batch.jsonl";
  std::ofstream(path) << R"({"text_b64":"aGk=","add_special":false})"
                      << "\n"
                      << R"({"text_b64":"%"})"
                      << "\n"
                      << R"({"ids":[900],"skip_special":true})"
                      << "\n"
                      << R"({"ids":[99999]})"
                      << "\n"
                      << "{\n"
                      << R"({"text_b64":"aGk=","mode":"odd"})"
                      << "\n";
  const Outcome outcome = RunTokenize({"--batch", path}, false);
  std::remove(path.c_str());
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  const std::vector<std::string> lines =
      absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_THAT(lines[0], HasSubstr("{\"ids\":["));
  EXPECT_THAT(lines[1], HasSubstr("base64"));
  EXPECT_EQ(lines[2], "{\"text_b64\":\"\"}");
  EXPECT_THAT(lines[3], HasSubstr("no token 99999"));
  EXPECT_THAT(lines[4], HasSubstr("error"));
  EXPECT_THAT(lines[5], HasSubstr("mode"));
}

TEST(Tokenize, RefusesTwoSourcesAndWrongIds) {
  EXPECT_EQ(
      ExitCodeOf(RunTokenize({"--text", "a", "--decode", "1"}, false).status),
      2);
  EXPECT_EQ(ExitCodeOf(RunTokenize({"--decode", "1,x"}, false).status), 2);
  EXPECT_EQ(ExitCodeOf(RunTokenize({"--decode", "99999"}, false).status), 4);
  EXPECT_EQ(
      ExitCodeOf(RunTokenize({"--file", "/does/not/exist"}, false).status), 4);
}

}  // namespace
}  // namespace millrace::cli
