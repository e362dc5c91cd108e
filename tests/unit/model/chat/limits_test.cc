// A template cannot use more steps, memory, output or stack than it may;
// provoked by templates that would, each kept just too large.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "gtest/gtest.h"
#include "tests/unit/model/chat/rendering.h"

namespace millrace::model {
namespace {

Json NoInput() { return boost::json::object(); }

TEST(Limits, StopsAtTheLastStep) {
  const std::string source =
      "{% for a in range(100) %}{% for b in range(100) %}{{ a }}{% endfor %}"
      "{% endfor %}";
  EXPECT_TRUE(RenderText(source, NoInput()).ok());
  const auto got = RenderText(source, NoInput(), {.steps_max = 1000});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ObjectOf(got.status()), "template");
}

TEST(Limits, EmptyLoopsCostStepsToo) {
  const auto got = RenderText(
      "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}"
      "{% endfor %}",
      NoInput(), {.steps_max = 100'000});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Limits, OutputIsBounded) {
  const auto got = RenderText("{% for a in range(100) %}0123456789{% endfor %}",
                              NoInput(), {.output_bytes_max = 999});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RenderText("{% for a in range(100) %}0123456789{% endfor %}",
                         NoInput(), {.output_bytes_max = 1000})
                  .ok());
}

TEST(Limits, MemoryOfLivingTextsIsBoundedThatOfDeadOnesIsNot) {
  const RenderLimits limits = {.memory_bytes_max = int64_t{1} << 20};
  const auto kept = RenderText(
      "{% set ns = namespace(l=[]) %}{% for a in range(100) %}"
      "{% set ns.l = ns.l + ['x' * 20000 ~ a] %}{% endfor %}",
      NoInput(), limits);
  EXPECT_EQ(kept.status().code(), absl::StatusCode::kResourceExhausted);
  const auto dropped = RenderText(
      "{% set ns = namespace(s='') %}{% for a in range(100) %}"
      "{% set ns.s = 'x' * 20000 ~ a %}{% endfor %}{{ ns.s | length }}",
      NoInput(), limits);
  EXPECT_EQ(dropped.value_or(std::string(dropped.status().message())), "20002");
}

TEST(Limits, OutputOfOpenMacrosCountsAsMemory) {
  const auto got = RenderText(
      "{% macro f(n) %}{{ 'x' * 100000 }}{{ f(n + 1) }}{% endmacro %}"
      "{{ f(0) }}",
      NoInput(), {.memory_bytes_max = int64_t{2} << 20});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Limits, TheInputCountsAsMemory) {
  boost::json::object input;
  input["s"] = std::string(1 << 20, 'x');
  EXPECT_EQ(RenderText("{{ s | length }}", input,
                       {.memory_bytes_max = int64_t{1} << 20})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Limits, DeepValuesAreRefusedWithoutACrash) {
  const std::string nest =
      "{% set ns = namespace(t=()) %}{% for i in range(5000) %}"
      "{% set ns.t = (ns.t,) %}{% endfor %}";
  EXPECT_FALSE(RenderText(nest + "{{ ns.t }}", NoInput()).ok());
  EXPECT_FALSE(RenderText(nest + "{{ ns.t | tojson }}", NoInput()).ok());
  EXPECT_FALSE(RenderText(nest + "{{ {ns.t: 1} }}", NoInput()).ok());
  EXPECT_FALSE(
      RenderText(nest + "{{ [ns.t] | unique | list }}", NoInput()).ok());
  EXPECT_FALSE(
      RenderText(nest + "{% set a = ns.t %}{% set ns.t = () %}"
                        "{% for i in range(5000) %}{% set ns.t = (ns.t,) %}"
                        "{% endfor %}{{ a == ns.t }}",
                 NoInput())
          .ok());
}

TEST(Limits, ValuesThatShareTheirPartsAreRefused) {
  const std::string nest =
      "{% set ns = namespace(t=(1,)) %}{% for i in range(60) %}"
      "{% set ns.t = (ns.t, ns.t) %}{% endfor %}";
  EXPECT_FALSE(RenderText(nest + "{{ ns.t }}", NoInput()).ok());
  EXPECT_FALSE(RenderText(nest + "{{ ns.t | tojson }}", NoInput()).ok());
  EXPECT_FALSE(RenderText(nest + "{{ {ns.t: 1} }}", NoInput()).ok());
}

TEST(Limits, CyclesAreRefusedAndTakenDown) {
  EXPECT_FALSE(
      RenderText("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", NoInput())
          .ok());
  EXPECT_FALSE(
      RenderText("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}",
                 NoInput())
          .ok());
}

TEST(Limits, LongChainsAreRefusedWithoutACrash) {
  std::string sum = "{{ 1";
  std::string path = "{{ a";
  for (int i = 0; i < 50'000; ++i) {
    sum += " + 1";
    path += ".a";
  }
  EXPECT_FALSE(RenderText(sum + " }}", NoInput()).ok());
  EXPECT_FALSE(RenderText(path + " }}", NoInput()).ok());
}

TEST(Limits, NothingThatCameInChanges) {
  boost::json::object message;
  message["role"] = "user";
  boost::json::object input;
  input["messages"] = boost::json::array{message};
  for (const char* change :
       {"messages.append(1)", "messages.pop()", "messages.clear()",
        "messages.insert(0, 1)", "messages.extend([1])", "messages.reverse()",
        "messages[0].update({'role': 'x'})", "messages[0].pop('role')",
        "messages[0].clear()", "messages[0].setdefault('x', 1)"}) {
    const auto got =
        RenderText(absl::StrCat("{% set _ = ", change, " %}"), input);
    EXPECT_FALSE(got.ok()) << change;
  }
}

}  // namespace
}  // namespace millrace::model
