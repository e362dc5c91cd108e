// Answers of a node: plain values come back equal through the wire types, and
// every field out of range is refused by name. Failures are provoked by
// changing one field of a good wire message.
#include "proto/node_codec.h"

#include <cmath>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::control {
namespace {

using ::testing::HasSubstr;

NodeDescription GoodNode() {
  NodeDescription node;
  node.name = "node-1";
  node.version = "0.1.0";
  node.wire_version = 1;
  node.isa = "avx512";
  node.threads = 8;
  node.memory_bytes = 44'000'000'000;
  node.memory_available_bytes = 40'000'000'000;
  node.resident_bytes = 12345;
  node.load_key = "abc/0-3";
  node.data_address = transport::Endpoint{"10.0.0.2", 7001};
  node.time = absl::FromUnixSeconds(1'700'000'000);
  node.rdma_devices = {"mlx5_0", "rxe0"};
  return node;
}

NodeRates GoodRates() {
  return {.memory_bytes = 1000,
          .memory_bandwidth = 2e10,
          .compute = {{"default", 1e11}, {"q8_0", 2e11}}};
}

transport::LinkRounds GoodRounds() {
  return {.bandwidth_out = {1e9, 2e9},
          .bandwidth_in = {3e9, 4e9},
          .latency_s = {1e-5, 2e-5}};
}

TEST(NodeCodecTest, ValuesComeBackEqual) {
  const NodeDescription node = *Decode(Encode(GoodNode()));
  EXPECT_EQ(node.name, GoodNode().name);
  EXPECT_EQ(node.version, GoodNode().version);
  EXPECT_EQ(node.wire_version, 1u);
  EXPECT_EQ(node.isa, "avx512");
  EXPECT_EQ(node.threads, 8);
  EXPECT_EQ(node.memory_bytes, GoodNode().memory_bytes);
  EXPECT_EQ(node.memory_available_bytes, GoodNode().memory_available_bytes);
  EXPECT_EQ(node.resident_bytes, 12345);
  EXPECT_EQ(node.load_key, "abc/0-3");
  EXPECT_EQ(node.data_address->host, "10.0.0.2");
  EXPECT_EQ(node.data_address->port, 7001);
  EXPECT_EQ(node.time, GoodNode().time);
  EXPECT_EQ(node.rdma_devices, GoodNode().rdma_devices);
  const NodeRates rates = *Decode(Encode(GoodRates()));
  EXPECT_EQ(rates.memory_bandwidth, 2e10);
  EXPECT_EQ(rates.compute, GoodRates().compute);
  const transport::LinkRounds rounds = *Decode(Encode(GoodRounds()));
  EXPECT_EQ(rounds.bandwidth_out, GoodRounds().bandwidth_out);
  EXPECT_EQ(rounds.bandwidth_in, GoodRounds().bandwidth_in);
  EXPECT_EQ(rounds.latency_s, GoodRounds().latency_s);
  OpenedLink link = {{"::1", 9}, {}};
  link.token[3] = std::byte{7};
  EXPECT_EQ(Decode(Encode(link))->token, link.token);
}

template <typename Wire>
void ExpectRefused(const Wire& good, const std::function<void(Wire&)>& change,
                   const std::string& field) {
  Wire bad = good;
  change(bad);
  const auto decoded = Decode(bad);
  ASSERT_FALSE(decoded.ok()) << field;
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(field));
}

TEST(NodeCodecTest, FieldsOutOfRangeAreNamed) {
  using Node = v1::NodeDescription;
  const Node node = Encode(GoodNode());
  ExpectRefused<Node>(
      node, [](Node& n) { n.set_name("a b"); }, "name");
  ExpectRefused<Node>(
      node, [](Node& n) { n.set_version(std::string(1000, 'x')); }, "version");
  ExpectRefused<Node>(
      node, [](Node& n) { n.set_threads(-1); }, "threads");
  ExpectRefused<Node>(
      node, [](Node& n) { n.set_memory_available_bytes(~0ULL); },
      "memory_available_bytes");
  ExpectRefused<Node>(
      node, [](Node& n) { n.set_data_address("10.0.0.1:0"); }, "data_address");
  ExpectRefused<Node>(
      node,
      [](Node& n) {
        for (int i = 0; i < 64; ++i) {
          n.add_rdma_devices("d");
        }
      },
      "rdma_devices");
  ExpectRefused<Node>(
      node, [](Node& n) { n.add_rdma_devices("\x1b"); }, "rdma_devices");

  using Rates = v1::NodeRates;
  const Rates rates = Encode(GoodRates());
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    ExpectRefused<Rates>(
        rates, [=](Rates& r) { r.set_memory_bandwidth(bad); },
        "memory_bandwidth");
    ExpectRefused<Rates>(
        rates, [=](Rates& r) { r.mutable_compute(0)->set_rate(bad); },
        "compute.rate");
  }
  ExpectRefused<Rates>(
      rates, [](Rates& r) { r.mutable_compute(1)->set_format("default"); },
      "compute");

  using Link = v1::LinkRates;
  const Link link = Encode(GoodRounds());
  ExpectRefused<Link>(
      link, [](Link& l) { l.clear_latency_s(); }, "latency_s");
  ExpectRefused<Link>(
      link, [](Link& l) { l.add_bandwidth_in(1); }, "bandwidth_in");
  ExpectRefused<Link>(
      link, [](Link& l) { l.set_bandwidth_out(0, -1); }, "bandwidth_out");
  ExpectRefused<Link>(
      link,
      [](Link& l) {
        for (int i = 0; i < 15; ++i) {
          l.add_latency_s(1);
        }
      },
      "latency_s");

  const v1::OpenedLink opened = Encode(OpenedLink{{"::1", 9}, {}});
  ExpectRefused<v1::OpenedLink>(
      opened, [](v1::OpenedLink& l) { l.set_token("short"); }, "token");
  ExpectRefused<v1::OpenedLink>(
      opened, [](v1::OpenedLink& l) { l.set_address("nowhere"); }, "address");
  v1::FindModelRequest find;
  find.set_model("m");
  ExpectRefused<v1::FindModelRequest>(
      find, [](v1::FindModelRequest& f) { f.clear_model(); }, "model");
  v1::MeasureLinkRequest measure;
  measure.set_peer("10.0.0.1:7");
  ExpectRefused<v1::MeasureLinkRequest>(
      measure, [](v1::MeasureLinkRequest& m) { m.set_peer("x"); }, "peer");
}

}  // namespace
}  // namespace millrace::control
