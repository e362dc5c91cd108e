// Addresses: what parses, what counts as loopback, and that links off loopback
// need --insecure. Failures are provoked by malformed and foreign addresses.
#include "transport/endpoint.h"

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::transport {
namespace {

using ::testing::HasSubstr;

TEST(Endpoint, ParsesAndFormats) {
  for (const char* text :
       {"127.0.0.1:0", "node-7.rack:65535", "[::1]:7000", "localhost:80"}) {
    const auto endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(FormatEndpoint(*endpoint), text);
  }
  EXPECT_EQ(ParseEndpoint("[fe80::1]:5")->host, "fe80::1");
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (const char* text :
       {"", ":", "7000", "host", "host:", ":7000", "host:65536", "host:-1",
        "host:+1", "host: 1", "host:1x", "::1:7000", "[]:1", "[::1:7", "a b:1",
        "a\n:1"}) {
    const auto endpoint = ParseEndpoint(text);
    EXPECT_EQ(KindOf(endpoint.status()), ErrorKind::kUsage) << text;
  }
  EXPECT_FALSE(ParseEndpoint(std::string(300, 'a') + ":1").ok());
}

TEST(Endpoint, KnowsLoopback) {
  for (const char* host :
       {"127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "192.0.2.1",
                           "::ffff:10.0.0.1", "128.0.0.1", "no.invalid"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(Endpoint, TellsAddressesFromNames) {
  EXPECT_TRUE(IsAddressLiteral("10.0.0.1"));
  EXPECT_TRUE(IsAddressLiteral("fe80::1"));
  EXPECT_FALSE(IsAddressLiteral("localhost"));
  EXPECT_FALSE(IsAddressLiteral("10.0.0"));
}

TEST(Endpoint, OffLoopbackNeedsInsecure) {
  EXPECT_TRUE(RequireTrustedLink({"127.0.0.1", 1}, false).ok());
  EXPECT_TRUE(RequireTrustedLink({"10.0.0.1", 1}, true).ok());
  const absl::Status refused = RequireTrustedLink({"10.0.0.1", 1}, false);
  EXPECT_EQ(KindOf(refused), ErrorKind::kUsage);
  EXPECT_EQ(ObjectOf(refused), "10.0.0.1:1");
  EXPECT_THAT(HintOf(refused), HasSubstr("--insecure"));
  EXPECT_THAT(HintOf(refused), HasSubstr("trusted"));
}

}  // namespace
}  // namespace millrace::transport
