// Every reference case renders to the very text that Jinja gives, or fails
// where Jinja does; provoked by one template for each feature of the language
// and by templates in the manner of real model families.
#include <sys/resource.h>

#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "gtest/gtest.h"
#include "tests/unit/model/chat/rendering.h"

namespace millrace::model {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int64_t kFileBytesMax = int64_t{4} << 20;

std::string DataPath(absl::string_view name) {
  return absl::StrCat(MILLRACE_TEST_DATA_DIR, "/templates/", name);
}

std::string TextOf(const boost::json::object& row, const char* key) {
  const boost::json::string& text = row.at(key).as_string();
  return {text.data(), text.size()};
}

std::string TemplateOf(const boost::json::object& row) {
  if (row.contains("template")) {
    return TextOf(row, "template");
  }
  if (row.contains("template_file")) {
    return ReadFile(DataPath(TextOf(row, "template_file")), kFileBytesMax)
        .value();
  }
  std::string out;
  for (const Json& part : row.at("template_parts").as_array()) {
    const boost::json::string& text = part.as_array().at(0).as_string();
    for (int64_t i = part.as_array().at(1).as_int64(); i > 0; --i) {
      out.append(text.data(), text.size());
    }
  }
  return out;
}

std::vector<boost::json::object> Rows(absl::string_view name) {
  const std::string text = ReadFile(DataPath(name), kFileBytesMax).value();
  std::vector<boost::json::object> rows;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty()) {
      rows.push_back(ParseJson(line, name).value().as_object());
    }
  }
  return rows;
}

absl::StatusOr<std::string> RenderRow(const boost::json::object& row) {
  Json input = row.at("input");
  if (row.contains("normalize")) {
    NormaliseMessages(input);
  }
  return RenderText(TemplateOf(row), input);
}

void ExpectRow(const boost::json::object& row) {
  SCOPED_TRACE(TextOf(row, "id"));
  const absl::StatusOr<std::string> got = RenderRow(row);
  if (row.contains("expect")) {
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, TextOf(row, "expect"));
    return;
  }
  if (got.ok()) {
    EXPECT_TRUE(row.contains("or_any")) << "rendered to " << *got;
    return;
  }
  EXPECT_FALSE(ObjectOf(got.status()).empty()) << got.status();
  if (TextOf(row, "error") == "raise") {
    EXPECT_EQ(WhatOf(got.status()), TextOf(row, "message"));
  }
}

TEST(ReferenceCases, EachFeatureOfTheLanguage) {
  const std::vector<boost::json::object> rows = Rows("micro.jsonl");
  ASSERT_GT(rows.size(), 100U);
  for (const boost::json::object& row : rows) {
    ExpectRow(row);
  }
}

TEST(ReferenceCases, CornersOfTheLanguage) {
  const std::vector<boost::json::object> rows = Rows("corners.jsonl");
  ASSERT_GT(rows.size(), 150U);
  for (const boost::json::object& row : rows) {
    ExpectRow(row);
  }
}

TEST(ReferenceCases, TemplatesInTheMannerOfRealFamilies) {
  const std::vector<boost::json::object> rows = Rows("family.jsonl");
  ASSERT_GT(rows.size(), 90U);
  for (const boost::json::object& row : rows) {
    ExpectRow(row);
  }
}

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

TEST(ReferenceCases, HostileTemplatesAreRefusedSoonAndInLittleMemory) {
  const std::vector<boost::json::object> rows = Rows("hostile.jsonl");
  ASSERT_GT(rows.size(), 20U);
  for (const boost::json::object& row : rows) {
    SCOPED_TRACE(TextOf(row, "id"));
    const double start = CpuSeconds();
    const absl::StatusOr<std::string> got = RenderRow(row);
    const double taken = CpuSeconds() - start;
    if (got.ok()) {
      ASSERT_TRUE(row.contains("or_expect")) << got->size() << " bytes";
      EXPECT_EQ(*got, TextOf(row, "or_expect"));
    }
    EXPECT_LT(taken, kSanitized ? 20.0 : 1.0);
  }
  rusage usage = {};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  if (!kSanitized) {
    EXPECT_LT(usage.ru_maxrss, 256 * 1024);  // KiB
  }
}

}  // namespace
}  // namespace millrace::model
