// TCP links against strangers and broken peers: silent and wrong dialers keep
// nobody out, and whatever a peer writes out of protocol ends the channel by
// name. Failures are provoked by raw sockets.
#include "transport/tcp/tcp_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/notification.h"
#include "transport/byte_order.h"

namespace millrace::transport {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr int64_t kFrameBytesMax = 1000;

TcpLinkOptions Options() {
  static const LinkToken kToken = MakeLinkToken();
  return {.epoch = 9,
          .segment = 2,
          .token = kToken,
          .frame_bytes_max = kFrameBytesMax,
          .window = 2};
}

std::unique_ptr<TcpListener> Listener() {
  return TcpListener::Listen({"127.0.0.1", 0}).value();
}

Descriptor RawConnect(const TcpListener& listener) {
  return ConnectSocket(listener.endpoint(), {SystemClock().Monotonic() + kLong})
      .value();
}

void RawSend(const Descriptor& socket, absl::Span<const std::byte> bytes) {
  ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void RawReceive(const Descriptor& socket, size_t bytes) {
  std::vector<std::byte> into(bytes);
  size_t filled = 0;
  while (filled < bytes) {
    ASSERT_TRUE(
        AwaitSocket(socket.get(), POLLIN, {SystemClock().Monotonic() + kLong})
            .ok());
    const ssize_t got =
        recv(socket.get(), into.data() + filled, bytes - filled, 0);
    ASSERT_GT(got, 0);
    filled += static_cast<size_t>(got);
  }
}

std::vector<std::byte> Record(uint32_t type, uint32_t argument,
                              uint64_t length) {
  std::vector<std::byte> bytes(RecordLayout::kBytes);
  StoreLe<uint32_t>(bytes.data(), type);
  StoreLe<uint32_t>(bytes.data() + RecordLayout::kArgument, argument);
  StoreLe<uint64_t>(bytes.data() + RecordLayout::kLength, length);
  return bytes;
}

// A channel whose other end is a raw socket that has shaken hands.
struct RawPeer {
  std::shared_ptr<Channel> channel;
  Descriptor socket;  // gone first: the channel need not wait for it to read
};

RawPeer MakeRawPeer() {
  auto listener = Listener();
  RawPeer peer;
  peer.socket = RawConnect(*listener);
  RawSend(peer.socket, EncodeHello({HelloKind::kDial, {}, Options()}));
  peer.channel = listener->Accept(Options(), kLong).value();
  return peer;
}

// What the next posted receive ends with.
absl::Status ReceiveEnd(Channel& channel) {
  absl::Status end;
  Notification done;
  channel.PostReceive(channel.NewBuffer(), [&](absl::StatusOr<int64_t> bytes,
                                               std::unique_ptr<FrameBuffer>) {
    end = bytes.status();
    done.Notify();
  });
  done.Wait();
  return end;
}

absl::Status EndAfter(absl::Span<const std::byte> bytes) {
  RawPeer peer = MakeRawPeer();
  RawSend(peer.socket, bytes);
  return ReceiveEnd(*peer.channel);
}

TEST(TcpLink, BytesOutOfProtocolEndTheChannelByName) {
  struct Case {
    std::vector<std::byte> bytes;
    const char* error;
  };
  const Case cases[] = {
      {Record(9, 0, 0), "unknown record 9"},
      {Record(0, 0, 0), "unknown record 0"},
      {Record(1, 0, kFrameBytesMax + 1), "a frame of 1001 bytes"},
      {Record(1, 0, UINT64_MAX), "at most 1000"},
      {Record(2, 3, 0), "3 credits"},
      {Record(2, 0, 0), "0 credits"},
      {Record(2, 1, 5), "a credit of 5 bytes"},
      {Record(3, 0, 0), "code 0"},
      {Record(3, 17, 0), "code 17"},
      {Record(3, 1, 513), "513 bytes"},
  };
  for (const Case& test : cases) {
    const absl::Status end = EndAfter(test.bytes);
    EXPECT_TRUE(absl::IsDataLoss(end)) << end;
    EXPECT_THAT(std::string(end.message()), HasSubstr(test.error));
  }
}

TEST(TcpLink, FrameWithoutACreditIsRefused) {
  RawPeer peer = MakeRawPeer();
  Notification done;
  absl::Status end;
  // Nothing is posted for receiving; the failure shows at a waiting send.
  peer.channel->PostSend(
      peer.channel->NewBuffer(), 1,
      [&](absl::Status status, std::unique_ptr<FrameBuffer>) {
        end = status;
        done.Notify();
      });
  RawSend(peer.socket, Record(1, 0, 4));
  done.Wait();
  EXPECT_THAT(std::string(end.message()), HasSubstr("without a credit"));
}

TEST(TcpLink, CloseReasonOfAPeerIsMadePrintable) {
  std::vector<std::byte> bytes = Record(3, 10, 4);
  for (const char c : {'b', '\x1b', '\n', '\xff'}) {
    bytes.push_back(static_cast<std::byte>(c));
  }
  const absl::Status end = EndAfter(bytes);
  EXPECT_EQ(end, absl::AbortedError("b\\x1b\\x0a\\xff"));
}

TEST(TcpLink, DeadPeersAreNoticedAtEveryPoint) {
  std::vector<std::byte> frame = Record(1, 0, 100);
  frame.resize(frame.size() + 100);
  for (size_t cut = 0; cut < frame.size(); cut += 7) {
    RawPeer peer = MakeRawPeer();
    Notification done;
    absl::Status end;
    peer.channel->PostReceive(
        peer.channel->NewBuffer(),
        [&](absl::StatusOr<int64_t> bytes, std::unique_ptr<FrameBuffer>) {
          end = bytes.status();
          done.Notify();
        });
    // The answer to the hello, and the credit of the posted buffer.
    RawReceive(peer.socket, HelloLayout::kBytes + RecordLayout::kBytes);
    RawSend(peer.socket, absl::MakeConstSpan(frame).subspan(0, cut));
    peer.socket.Reset();
    done.Wait();
    EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  }
}

TEST(TcpLink, SilentAndStrangeDialersKeepNobodyOut) {
  auto listener = Listener();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(RawConnect(*listener));
    if (i % 3 == 1) {
      const std::string text(200, 'x');
      RawSend(strangers.back(),
              absl::MakeConstSpan(
                  reinterpret_cast<const std::byte*>(text.data()), 200));
    }
  }
  absl::StatusOr<std::shared_ptr<Channel>> dialed;
  std::thread dialer(
      [&] { dialed = DialTcp(listener->endpoint(), Options(), kLong); });
  auto accepted = listener->Accept(Options(), kLong);
  dialer.join();
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_TRUE(dialed.ok()) << dialed.status();
}

TEST(TcpLink, WrongTokenAndWrongPlanAreRefusedByName) {
  auto listener = Listener();
  absl::StatusOr<std::shared_ptr<Channel>> accepted;
  std::thread acceptor([&] { accepted = listener->Accept(Options(), kLong); });
  TcpLinkOptions token = Options();
  token.token = MakeLinkToken();
  const absl::Status wrong_token =
      DialTcp(listener->endpoint(), token, kLong).status();
  EXPECT_TRUE(absl::IsAborted(wrong_token)) << wrong_token;
  EXPECT_THAT(std::string(wrong_token.message()), HasSubstr("another link"));
  for (int field = 0; field < 3; ++field) {
    TcpLinkOptions plan = Options();
    plan.epoch += field == 0 ? 1 : 0;
    plan.segment += field == 1 ? 1 : 0;
    plan.frame_bytes_max += field == 2 ? 1 : 0;
    const absl::Status wrong_plan =
        DialTcp(listener->endpoint(), plan, kLong).status();
    EXPECT_TRUE(absl::IsAborted(wrong_plan)) << wrong_plan;
    EXPECT_THAT(std::string(wrong_plan.message()), HasSubstr("another plan"));
  }
  EXPECT_TRUE(DialTcp(listener->endpoint(), Options(), kLong).ok());
  acceptor.join();
  EXPECT_TRUE(accepted.ok()) << accepted.status();
}

TEST(TcpLink, OtherLinkVersionIsNamedOnBothSides) {
  auto listener = Listener();
  HelloBytes hello = EncodeHello({HelloKind::kDial, {}, Options()});
  StoreLe<uint16_t>(&hello[HelloLayout::kVersion], 77);
  StoreLe<uint32_t>(&hello[HelloLayout::kCrc],
                    Crc32c(0, hello.data(), HelloLayout::kCrc));
  Hello decoded;
  const absl::Status status = DecodeHello(hello, decoded);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("77"));
  Descriptor old = RawConnect(*listener);
  RawSend(old, hello);
  std::thread acceptor([&] {
    EXPECT_TRUE(absl::IsCancelled(listener->Accept(Options(), kLong).status()));
  });
  ASSERT_TRUE(
      AwaitSocket(old.get(), POLLIN, {SystemClock().Monotonic() + kLong}).ok());
  HelloBytes answer;
  ASSERT_EQ(recv(old.get(), answer.data(), answer.size(), MSG_WAITALL), 64);
  ASSERT_TRUE(DecodeHello(answer, decoded).ok());
  EXPECT_EQ(decoded.refusal, HelloRefusal::kVersion);
  EXPECT_EQ(decoded.link.token, LinkToken{});
  listener->Close();
  acceptor.join();
}

TEST(TcpLink, DialEndsInTimeWithoutAnAnswer) {
  auto listener = Listener();
  const auto dialed =
      DialTcp(listener->endpoint(), Options(), absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(dialed.status())) << dialed.status();
  const auto accepted = listener->Accept({.epoch = 1, .token = MakeLinkToken()},
                                         absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(accepted.status()));
}

TEST(TcpLink, WaitingEndsWhenCancelled) {
  auto listener = Listener();
  std::atomic<bool> cancelled{false};
  absl::Status dialed;
  std::thread dialer([&] {
    dialed =
        DialTcp(listener->endpoint(), Options(), kLong, &cancelled).status();
  });
  TcpLinkOptions other = Options();
  other.token = MakeLinkToken();
  auto idle = Listener();
  std::thread canceller([&] { cancelled = true; });
  EXPECT_TRUE(
      absl::IsCancelled(idle->Accept(other, kLong, &cancelled).status()));
  dialer.join();
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(dialed)) << dialed;
}

TEST(TcpLink, NobodyThereIsUnavailable) {
  const Endpoint gone = Listener()->endpoint();
  const auto dialed = DialTcp(gone, Options(), kLong);
  EXPECT_TRUE(absl::IsUnavailable(dialed.status())) << dialed.status();
}

TEST(TcpLink, HelloFieldsAreBounded) {
  for (const auto& [offset, value] :
       std::vector<std::pair<size_t, uint32_t>>{{HelloLayout::kKind, 0},
                                                {HelloLayout::kKind, 4},
                                                {HelloLayout::kWindow, 0},
                                                {HelloLayout::kWindow, 1025},
                                                {HelloLayout::kReserved, 1},
                                                {HelloLayout::kRefusal, 4}}) {
    HelloBytes bytes = EncodeHello({HelloKind::kDial, {}, Options()});
    if (offset == HelloLayout::kKind) {
      StoreLe<uint16_t>(&bytes[offset], static_cast<uint16_t>(value));
    } else {
      StoreLe<uint32_t>(&bytes[offset], value);
    }
    StoreLe<uint32_t>(&bytes[HelloLayout::kCrc],
                      Crc32c(0, bytes.data(), HelloLayout::kCrc));
    Hello hello;
    EXPECT_TRUE(absl::IsDataLoss(DecodeHello(bytes, hello))) << offset;
  }
}

}  // namespace
}  // namespace millrace::transport
