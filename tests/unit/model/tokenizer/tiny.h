#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/tokenizer/open.h"

namespace millrace::model {

// One of the small vocabularies beside the tests, by its file name.
inline std::unique_ptr<Tokenizer> Tiny(const std::string& name) {
  auto tokenizer =
      OpenTokenizer(absl::StrCat(MILLRACE_TEST_DATA_DIR, "/tokenizers/", name));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

}  // namespace millrace::model
