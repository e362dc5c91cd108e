// Cost files become the numbers they say or an error that names the field;
// provoked with both languages, runs and groups, files damaged in one place,
// and random costs that are written and read back.
#include "planner/costs_codec.h"

#include <random>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "boost/json/object.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/inputs_writer.h"

namespace millrace::planner {
namespace {

using ::testing::HasSubstr;

TEST(CostsCodec, ReadsYamlAndJson) {
  const char* yaml = R"(
version: 1
name: small
hidden_bytes: 14336
layers:
  - repeat: 2
    layers:
      - {kind: linear, weights: 16GB, state_per_sequence: 6MiB, repeat: 3,
         flops_per_token: 6e9, bytes_per_token: 1e9}
      - {kind: full, weights: 1.5GiB, kv_per_token: 1152, vectors: 2}
first: {weights: 2.3GB}
last: {weights: 2GB, flops_per_token: 2.3e9}
)";
  const char* json = R"({"version": 1, "name": "small", "hidden_bytes": 14336,
    "layers": [{"repeat": 2, "layers": [
      {"kind": "linear", "weights": 16000000000, "state_per_sequence": 6291456,
       "repeat": 3, "flops_per_token": 6000000000, "bytes_per_token": 1e9},
      {"kind": "full", "weights": "1.5GiB", "kv_per_token": 1152,
       "vectors": 2}]}],
    "first": {"weights": "2.3GB"},
    "last": {"weights": 2e9, "flops_per_token": 2.3e9}})";
  for (const char* text : {yaml, json}) {
    const auto costs = ParseCosts(text, "c");
    ASSERT_TRUE(costs.ok()) << costs.status();
    EXPECT_EQ(costs->name, "small");
    EXPECT_EQ(costs->hidden_bytes, 14336);
    ASSERT_EQ(costs->layers.size(), 8u);
    EXPECT_EQ(costs->layers[0], costs->layers[6]);
    EXPECT_EQ(costs->layers[4].kind, "linear");
    EXPECT_EQ(costs->layers[4].state_per_sequence, 6 << 20);
    EXPECT_EQ(costs->layers[4].bytes_per_token, 1e9);
    EXPECT_EQ(costs->layers[4].vectors, 1);
    EXPECT_EQ(costs->layers[7].kind, "full");
    EXPECT_EQ(costs->layers[7].vectors, 2);
    // What a pass reads: all weights where nothing else is said, of the
    // embedding nothing.
    EXPECT_EQ(costs->layers[7].bytes_per_token, 1.5 * (1 << 30));
    EXPECT_EQ(costs->first.bytes_per_token, 0);
    EXPECT_EQ(costs->last.bytes_per_token, 2e9);
    EXPECT_EQ(costs->last.flops_per_token, 2.3e9);
    EXPECT_EQ(costs->kv_block_positions, 1);
  }
}

// {version: 1, hidden_bytes: 1, layers: [LAYER]}
std::string WithLayer(const std::string& layer) {
  return "{version: 1, hidden_bytes: 1, layers: [" + layer + "]}";
}

TEST(CostsCodec, RefusesByName) {
  struct Refusal {
    std::string text;
    const char* names;
  };
  const Refusal refusals[] = {
      {"", "map"},
      {"{hidden_bytes: 1, layers: [{weights: 1}]}", "version"},
      {"{version: 1, layers: [{weights: 1}]}", "hidden_bytes"},
      {"{version: 1, hidden_bytes: 1}", "layers"},
      {"{version: 1, hidden_bytes: -1, layers: [{weights: 1}]}",
       "hidden_bytes"},
      {"{version: 1, hidden_bytes: 1, layers: {weights: 1}}", "layers"},
      {WithLayer(""), "layers"},
      {WithLayer("7"), "layers[0]"},
      {WithLayer("{kind: full}"), "layers[0].weights"},
      {WithLayer("{weights: -1}"), "layers[0].weights"},
      {WithLayer("{weights: 1e300}"), "layers[0].weights"},
      {WithLayer("{weights: 9223372036854775808}"), "layers[0].weights"},
      {WithLayer("{weights: nan}"), "layers[0].weights"},
      {WithLayer("{weights: [1]}"), "layers[0].weights"},
      {WithLayer("{weights: 1, kv_per_token: x}"), "layers[0].kv_per_token"},
      {WithLayer("{weights: 1, state_per_sequence: -6MiB}"),
       "layers[0].state_per_sequence"},
      {WithLayer("{weights: 1, flops_per_token: 1e300}"),
       "layers[0].flops_per_token"},
      {WithLayer("{weights: 1, flops_per_token: -1}"),
       "layers[0].flops_per_token"},
      {WithLayer("{weights: 1, vectors: 1.5}"), "layers[0].vectors"},
      {WithLayer("{weights: 1, repeat: 0}"), "layers[0].repeat"},
      {WithLayer("{weights: 1, repeat: 100001}"), "layers[0].repeat"},
      {WithLayer("{weights: 1, repeat: 100000}, {weights: 1}"),
       "layers[1].repeat"},
      {WithLayer("{repeat: 100000, layers: [{weights: 1, repeat: 100000}]}"),
       "layers[0].repeat"},
      {WithLayer("{repeat: 2, layers: []}"), "layers[0].layers"},
      {WithLayer("{repeat: 2, weights: 1, layers: [{weights: 1}]}"),
       "layers[0].weights"},
      {WithLayer("{layers: [{weights: 1}, {weights: 1, speed: 2}]}"),
       "layers[0].layers[1].speed"},
      {WithLayer("{weights: 1, weights: 2}"), "layers[0].weights"},
      {WithLayer("{weights: 5PB, repeat: 2000}"), "weights"},
      {WithLayer("{weights: 1, kv_per_token: 5PB, repeat: 2000}"),
       "kv_per_token"},
      {WithLayer("{weights: 1, experts: {count: 2, used: 3}}"),
       "layers[0].experts.used"},
      {WithLayer("{weights: 1, experts: {count: 70000, used: 3}}"),
       "layers[0].experts.count"},
      {"{version: 1, hidden_bytes: 1, layers: [{weights: 1}], last: {}}",
       "last.weights"},
      {"{version: 1, hidden_bytes: 1, layers: [{weights: 1}], first: "
       "{weights: 1, kv_per_token: 1}}",
       "first.kv_per_token"},
      {"{version: 1, hidden_bytes: 1, layers: [{weights: 1}], "
       "shared_weights_bytes: 1}",
       "shared_weights_bytes"},
      {"{version: 1, hidden_bytes: 1, layers: [{weights: 1}], extra: 1}",
       "extra"},
  };
  for (const Refusal& refusal : refusals) {
    const auto costs = ParseCosts(refusal.text, "c.yaml");
    ASSERT_FALSE(costs.ok()) << refusal.text;
    EXPECT_EQ(ExitCodeOf(costs.status()), 4) << refusal.text;
    EXPECT_EQ(ObjectOf(costs.status()), "c.yaml") << refusal.text;
    EXPECT_FALSE(HintOf(costs.status()).empty()) << refusal.text;
    EXPECT_THAT(std::string(costs.status().message()), HasSubstr(refusal.names))
        << refusal.text;
  }
}

// A planner keeps sums for every kind of experts and every format.
TEST(CostsCodec, RefusesTooManyKinds) {
  std::string experts;
  std::string formats;
  for (int i = 1; i <= 40; ++i) {
    const std::string number = std::to_string(i);
    experts += (i == 1 ? "" : ", ") +
               ("{weights: 1, experts: {count: 64, used: " + number + "}}");
    formats += (i == 1 ? "" : ", ") + ("{weights: 1, format: f" + number + "}");
  }
  EXPECT_THAT(
      std::string(ParseCosts(WithLayer(experts), "c").status().message()),
      HasSubstr("layers.experts"));
  EXPECT_THAT(
      std::string(ParseCosts(WithLayer(formats), "c").status().message()),
      HasSubstr("layers.format"));
}

// What is written is read back bit for bit.
TEST(CostsCodec, WritesWhatItReads) {
  std::mt19937_64 random(20261202);
  const auto pick = [&](int64_t high) {
    return std::uniform_int_distribution<int64_t>(0, high)(random);
  };
  const auto real = [&] {
    return std::uniform_real_distribution<double>(0, 1e15)(random);
  };
  for (int round = 0; round < 300; ++round) {
    ModelCosts costs;
    costs.name = "m";
    costs.digest = round % 2 == 0 ? "" : "sha256:1";
    costs.hidden_bytes = pick(1'000'000);
    costs.kv_block_positions = round % 3 == 0 ? 1 : 64;
    for (int64_t i = pick(8); i >= 0; --i) {
      LayerCost layer;
      layer.kind = pick(1) == 0 ? "full" : "";
      layer.weights_bytes = pick(int64_t{1} << 57);
      layer.kv_per_token = pick(5000);
      layer.kv_positions_max = pick(1) * 1024;
      layer.state_per_sequence = pick(1) * pick(1'000'000'000);
      layer.flops_per_token = real();
      layer.bytes_per_token = static_cast<double>(pick(int64_t{1} << 52));
      if (pick(1) == 0) {
        layer.experts = {256, 8, real()};
      }
      layer.vectors = pick(3);
      layer.format = pick(1) == 0 ? "q8_0" : "";
      costs.layers.insert(costs.layers.end(), 1 + pick(3), layer);
    }
    costs.first = {pick(1'000'000), 0, real()};
    costs.last = {pick(1'000'000), 17, real()};
    costs.shared_weights_bytes = pick(1) * costs.last.weights_bytes;
    const std::string text = WriteJson(CostsToJson(costs));
    const auto back = ParseCosts(text, "round trip");
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << text;
    ASSERT_EQ(*back, costs) << text;
  }
}

}  // namespace
}  // namespace millrace::planner
