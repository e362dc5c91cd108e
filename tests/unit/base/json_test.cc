#include "base/json.h"

#include <string>

#include "base/error.h"
#include "boost/json/array.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(Json, RefusesRepeatedKeysByName) {
  const auto parsed = ParseJson(R"({"a": {"b": 1, "b": 2}})", "x.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.status().message(), HasSubstr("'b' is given twice"));
  // The same key in two objects is fine.
  EXPECT_TRUE(ParseJson(R"({"a": {"b": 1}, "b": {"b": 2}})", "x.json").ok());
}

TEST(Json, ReadsNumbersToTheLastDigit) {
  const auto parsed = ParseJson(
      "[0.9690406502940995, 0.36712383142708804, 8.63854821677757e+252, 2.567,"
      " 5e-324, 18446744073709551615, -9223372036854775808]",
      "x");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& list = parsed->as_array();
  EXPECT_EQ(list.at(0).as_double(), 0.9690406502940995);
  EXPECT_EQ(list.at(1).as_double(), 0.36712383142708804);
  EXPECT_EQ(list.at(2).as_double(), 8.63854821677757e+252);
  EXPECT_EQ(list.at(3).as_double(), 2.567);
  EXPECT_EQ(list.at(4).as_double(), 5e-324);
  EXPECT_EQ(list.at(5).as_uint64(), 18446744073709551615U);
  EXPECT_EQ(list.at(6).as_int64(), INT64_MIN);
}

TEST(Json, RefusesWhatIsNotStrictJson) {
  for (const char* text : {"", "{", "{}x", "[1,]", "NaN", "// x\n1", "'a'",
                           "\"\xff\"", "[01]", "{\"a\":}"}) {
    EXPECT_FALSE(ParseJson(text, "x").ok()) << text;
  }
  EXPECT_FALSE(ParseJson(std::string(100, '['), "x").ok());
  EXPECT_THAT(ParseJson("{\"cut\": 1, \"off", "x").status().message(),
              HasSubstr("no valid JSON"));
}

TEST(Json, FieldsNameFileAndKey) {
  const auto parsed =
      ParseJson(R"({"n": 3.0, "half": 0.5, "s": "x", "nul": null,
                    "o": {"k": "no"}})",
                "c.json");
  ASSERT_TRUE(parsed.ok());
  const auto object = JsonObject::From(*parsed, "c.json");
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->Integer("n", 0, 10).value(), 3);
  EXPECT_EQ(object->Integer("half", 0, 10).status().message(),
            "c.json: half: must be a whole number from 0 to 10");
  EXPECT_EQ(object->IntegerOr("nul", 0, 10, 7).value(), 7);
  EXPECT_EQ(object->Object("o")->Integer("k", 1, 2).status().message(),
            "c.json: o.k: must be a whole number from 1 to 2");
  EXPECT_EQ(ExitCodeOf(object->String("n").status()), 4);
}

}  // namespace
}  // namespace millrace
