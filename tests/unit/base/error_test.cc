#include "base/error.h"

#include "gtest/gtest.h"

namespace millrace {
namespace {

// Object, hint and exit code survive the way through absl::Status.
TEST(Error, CarriesObjectHintAndKind) {
  const absl::Status status =
      InputError("model.gguf", "is cut", "copy it again");
  EXPECT_EQ(status.message(), "model.gguf: is cut");
  EXPECT_EQ(ObjectOf(status), "model.gguf");
  EXPECT_EQ(WhatOf(status), "is cut");
  EXPECT_EQ(HintOf(status), "copy it again");
  EXPECT_EQ(ExitCodeOf(status), 4);
  EXPECT_EQ(ExitCodeOf(UsageError("--x", "no")), 2);
  EXPECT_EQ(ExitCodeOf(AnswerIsNo("plan", "does not fit")), 3);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), 1);
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
}

TEST(Error, WithObjectKeepsKindAndHint) {
  const absl::Status status =
      WithObject(InputError("key", "is bad", "fix it"), "file");
  EXPECT_EQ(status.message(), "file: key: is bad");
  EXPECT_EQ(HintOf(status), "fix it");
  EXPECT_EQ(ExitCodeOf(status), 4);
}

// A hostile name cannot smuggle escapes or broken UTF-8 into a terminal.
TEST(Error, PrintableEscapes) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(Printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("h\xc3\xa9"), "h\xc3\xa9");
  // A control of eight bits, and one that turns the direction of writing.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(Printable("a\xe2\x80\xae"
                      "b"),
            "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(Printable("\xe2\x81\xa7\xe2\x82\xac"),
            "\\xe2\\x81\\xa7\xe2\x82\xac");
  EXPECT_EQ(Printable(std::string(500, 'a'), 10), "aaaaaaaaaa...");
}

}  // namespace
}  // namespace millrace
