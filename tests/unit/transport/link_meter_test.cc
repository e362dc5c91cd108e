// Measuring a link: both ends over TCP, slow and hostile peers. Failures are
// provoked by a peer that says nothing, one that answers with the wrong frame,
// and one that asks for more than may be asked for.
#include "transport/link_meter.h"

#include <cstring>
#include <thread>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "transport/byte_order.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::transport {
namespace {

const std::atomic<bool> kGoOn{false};

// Two ends of a TCP link as a meter has it.
struct Ends {
  std::shared_ptr<Channel> meter, answerer;
};

Ends Connect() {
  const TcpLinkOptions link = MeteredLink(MakeLinkToken());
  auto listener = TcpListener::Listen({"127.0.0.1", 0});
  EXPECT_TRUE(listener.ok()) << listener.status();
  Ends ends;
  std::thread dialer([&] {
    auto dialed = DialTcp((*listener)->endpoint(), link, absl::Seconds(10));
    EXPECT_TRUE(dialed.ok()) << dialed.status();
    ends.meter = *dialed;
  });
  auto accepted = (*listener)->Accept(link, absl::Seconds(10));
  dialer.join();
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  ends.answerer = *accepted;
  return ends;
}

TEST(LinkMeterTest, ValuesOfEveryRoundBothWays) {
  const Ends ends = Connect();
  absl::Status answered;
  std::thread answerer(
      [&] { answered = AnswerMeter(ends.answerer, absl::Seconds(60), kGoOn); });
  const absl::StatusOr<LinkRounds> rounds =
      MeterLink(ends.meter, 2, absl::Seconds(30), kGoOn);
  answerer.join();
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  EXPECT_TRUE(absl::IsCancelled(answered)) << answered;
  for (const std::vector<double>& values :
       {rounds->bandwidth_in, rounds->bandwidth_out, rounds->latency_s}) {
    ASSERT_EQ(values.size(), 2u);
    EXPECT_GT(values[0], 0);
    EXPECT_GT(values[1], 0);
  }
}

TEST(LinkMeterTest, ASilentPeerIsGivenUp) {
  const Ends ends = Connect();
  const absl::StatusOr<LinkRounds> rounds =
      MeterLink(ends.meter, 1, absl::Milliseconds(50), kGoOn);
  EXPECT_TRUE(absl::IsDeadlineExceeded(rounds.status())) << rounds.status();
  const absl::Status answered =
      AnswerMeter(ends.answerer, absl::Milliseconds(50), kGoOn);
  EXPECT_FALSE(answered.ok());
}

TEST(LinkMeterTest, CancellingEndsIt) {
  const Ends ends = Connect();
  const std::atomic<bool> cancelled{true};
  const absl::StatusOr<LinkRounds> rounds =
      MeterLink(ends.meter, 1, absl::Seconds(1000), cancelled);
  EXPECT_TRUE(absl::IsCancelled(rounds.status())) << rounds.status();
}

// Sends one frame of `bytes` with a header, as a peer that knows no manners.
void SendFrame(Channel& channel, uint32_t kind, uint32_t count, int64_t bytes) {
  std::unique_ptr<FrameBuffer> buffer = channel.NewBuffer();
  std::memset(buffer->bytes().data(), 0, 16);
  StoreLe<uint32_t>(buffer->bytes().data(), kind);
  StoreLe<uint32_t>(buffer->bytes().data() + 4, count);
  channel.PostSend(std::move(buffer), bytes,
                   [](absl::Status, std::unique_ptr<FrameBuffer>) {});
}

TEST(LinkMeterTest, WhatNoMeterSendsEndsTheAnswers) {
  struct Case {
    uint32_t kind, count;
    int64_t bytes;
  };
  for (const Case& bad : {Case{9, 0, 16}, Case{0, 0, 16}, Case{1, 0, 15},
                          Case{4, 4097, 16}, Case{4, 0xFFFFFFFF, 16}}) {
    const Ends ends = Connect();
    SendFrame(*ends.meter, bad.kind, bad.count, bad.bytes);
    const absl::Status answered =
        AnswerMeter(ends.answerer, absl::Seconds(60), kGoOn);
    EXPECT_TRUE(absl::IsDataLoss(answered)) << bad.kind << answered;
  }
}

TEST(LinkMeterTest, AWrongAnswerEndsTheMeter) {
  const Ends ends = Connect();
  SendFrame(*ends.answerer, 2, 0, 16);  // data instead of a ping's answer
  const absl::StatusOr<LinkRounds> rounds =
      MeterLink(ends.meter, 1, absl::Seconds(60), kGoOn);
  EXPECT_TRUE(absl::IsDataLoss(rounds.status())) << rounds.status();
}

}  // namespace
}  // namespace millrace::transport
