#include "cli/simulation/load_report_output.h"

#include <string>

#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::cli {
namespace {

using testing::HasSubstr;

SimulatedLoad LoadOf() {
  SimulatedLoad load;
  load.model = "model";
  load.options.workload.arrivals.rate = 5;
  load.options.workload.seed = 7;
  coordinator::LoadReport& report = load.report;
  report.requests = 3;
  report.completed = 2;
  report.refused = 1;
  report.first_error = "queue: full";
  report.duration = absl::Seconds(4);
  report.arriving = absl::Seconds(1);
  report.input_tokens = 100;
  report.output_tokens = 20;
  report.good = 1;
  for (const double seconds : {0.1, 0.3}) {
    report.ttft.Add(seconds);
    report.e2el.Add(10 * seconds);
  }
  report.nodes = {{"a", 0.25}, {"b", 0.75}};
  return load;
}

// The keys of vLLM's `bench serve`, in milliseconds.
TEST(LoadReportToJson, HasTheSchema) {
  SimulatedLoad load = LoadOf();
  const Json json = LoadReportToJson(load, "20260304-050607");
  const boost::json::object& keys = json.as_object();
  for (const char* key : {"date",
                          "endpoint_type",
                          "backend",
                          "label",
                          "model_id",
                          "tokenizer_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests"}) {
    EXPECT_TRUE(keys.contains(key)) << key;
  }
  for (const char* of : {"mean", "median", "std", "p90", "p95", "p99"}) {
    for (const char* name : {"ttft", "tpot", "itl", "e2el"}) {
      EXPECT_TRUE(keys.at(std::string(of) + "_" + name + "_ms").is_double());
    }
  }
  EXPECT_EQ(keys.at("backend").as_string(), "millrace-simulate");
  EXPECT_EQ(keys.at("date").as_string(), "20260304-050607");
  EXPECT_NEAR(keys.at("mean_ttft_ms").as_double(), 200, 1e-9);
  EXPECT_NEAR(keys.at("p90_ttft_ms").as_double(), 280, 1e-9);
  EXPECT_NEAR(keys.at("std_e2el_ms").as_double(), 1000, 1e-9);
  EXPECT_EQ(keys.at("failed").as_int64(), 1);
  EXPECT_EQ(keys.at("num_prompts").as_int64(), 3);
  EXPECT_EQ(keys.at("request_rate").as_double(), 5);
  EXPECT_EQ(keys.at("output_throughput").as_double(), 5);
  EXPECT_EQ(keys.at("total_token_throughput").as_double(), 30);
  EXPECT_TRUE(keys.at("request_goodput").is_null());
  EXPECT_TRUE(keys.at("slo").is_null());
  EXPECT_EQ(keys.at("stages").as_array()[1].at("busy_share").as_double(), 0.75);

  load.options.limits.ttft = absl::Milliseconds(200);
  const Json limited = LoadReportToJson(load, "");
  EXPECT_EQ(limited.at("request_goodput").as_double(), 0.25);
  EXPECT_EQ(limited.at("slo").at("ttft_ms").as_double(), 200);
  EXPECT_FALSE(limited.at("slo").at("met").as_bool());

  load.options.workload.arrivals.concurrency = 9;
  const Json closed = LoadReportToJson(load, "");
  EXPECT_EQ(closed.at("request_rate").as_string(), "inf");
  EXPECT_EQ(closed.at("max_concurrency").as_int64(), 9);
}

// The verdict first, then what it rests on; the busiest node on top.
TEST(LoadReportText, SaysTheVerdictFirst) {
  SimulatedLoad load = LoadOf();
  EXPECT_EQ(LoadReportText(load).find("2 of 3 requests completed in 4.00 s"),
            0U);
  load.options.limits.tpot = absl::Milliseconds(500);
  const std::string text = LoadReportText(load);
  EXPECT_EQ(text.find("misses the limits: 50.00 % of the 2 completed requests "
                      "kept tpot <= 500 ms, 1 failed\n"),
            0U)
      << text;
  EXPECT_THAT(text, HasSubstr("1 refused, 0 waited too long, 0 lost; the "
                              "first: queue: full"));
  EXPECT_LT(text.find("\nb  "), text.find("\na  "));
  load.rate_searched = true;
  EXPECT_EQ(LoadReportText(load).find("5 requests/s is the highest rate"), 0U);
}

}  // namespace
}  // namespace millrace::cli
