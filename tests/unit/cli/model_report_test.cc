// The report of a model adds up: layers, embedding and head are its totals;
// provoked on models whose layers differ and on tied ones.
#include "cli/model_report.h"

#include <string>

#include "boost/json/array.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/spec_from_config.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::cli {
namespace {

using ::millrace::testing::TempDir;
using ::millrace::testing::TinyConfigJson;
using ::millrace::testing::TinyFamily;
using ::millrace::testing::TinyModel;
using ::testing::HasSubstr;

model::ModelSpec SpecOf(const TinyModel& tiny) {
  TempDir dir;
  const auto spec =
      model::SpecFromConfig(dir.Write("config.json", TinyConfigJson(tiny)));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : model::ModelSpec();
}

int64_t SumOf(const boost::json::object& report, const char* key) {
  int64_t sum = 0;
  for (const char* part : {"embedding", "head"}) {
    sum += report.at(part).at(key).to_number<int64_t>();
  }
  for (const Json& layer : report.at("layer_details").get_array()) {
    sum += layer.at(key).to_number<int64_t>();
  }
  return sum;
}

TEST(ModelReport, PartsAddUp) {
  for (const TinyFamily family : millrace::testing::kTinyFamilies) {
    TinyModel tiny;
    tiny.family = family;
    const model::ModelSpec spec = SpecOf(tiny);
    const boost::json::object report = ModelReport(spec);
    EXPECT_EQ(SumOf(report, "stored_bytes"),
              report.at("stored_bytes").get_int64());
    EXPECT_EQ(SumOf(report, "weights_bytes"),
              report.at("weights_bytes").get_int64());
    EXPECT_EQ(report.at("bytes_by_format").at("bf16").get_int64(),
              report.at("stored_bytes").get_int64());
    EXPECT_EQ(report.at("kv_bytes_per_token").get_int64(), 6 * 2 * 2 * 16 * 2);
    int64_t bytes = 0;
    for (const Json& tensor : TensorReport(spec, {})) {
      bytes += tensor.at("bytes").to_number<int64_t>();
    }
    EXPECT_EQ(bytes, report.at("stored_bytes").get_int64());
  }
}

TEST(ModelReport, TiedHeadIsHeldOnce) {
  TinyModel tiny;
  tiny.tied = true;
  const boost::json::object report = ModelReport(SpecOf(tiny));
  EXPECT_EQ(SumOf(report, "weights_bytes") - 320 * 64 * 2,
            report.at("weights_bytes").get_int64());
}

TEST(ModelReport, EqualLayersAreOneLineOfText) {
  TinyModel tiny;
  tiny.family = TinyFamily::kQwen2;
  const std::string text = ModelReportText(ModelReport(SpecOf(tiny)));
  EXPECT_THAT(text, HasSubstr("0-1 "));
  EXPECT_THAT(text, HasSubstr("2-5 "));
  EXPECT_THAT(text, HasSubstr("window attention, dense of 12"));
}

}  // namespace
}  // namespace millrace::cli
