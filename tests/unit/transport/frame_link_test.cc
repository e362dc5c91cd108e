// Frame senders and receivers over an in-process pair: order, back-pressure,
// stale epochs, damaged frames and ends with a reason. Failures are provoked by
// a slow consumer, raw bytes on the channel, and closing from either side.
#include "transport/frame_link.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/notification.h"
#include "transport/inproc/inproc_channel.h"

namespace millrace::transport {
namespace {

using ::testing::HasSubstr;

LinkOptions Options() {
  return {.limits = {.slots = 4,
                     .rows_max = 8,
                     .columns = 6,
                     .positions_max = 100,
                     .vocab_size = 50,
                     .ops_max = 3},
          .epoch = 5,
          .window = 2,
          .checksum = false};
}

struct Link {
  std::shared_ptr<Channel> near;
  std::shared_ptr<Channel> far;
};

Link MakeLink() {
  auto [near, far] = MakeInProcPair(
      {.frame_bytes_max = Options().limits.FrameBytesMax(), .window = 2});
  return {near, far};
}

Frame FrameNumber(uint64_t number) {
  Frame frame;
  frame.epoch = 5;
  frame.microbatch = number;
  frame.rows.resize(1);
  return frame;
}

TEST(FrameLink, FramesArriveInOrderUnderBackPressure) {
  constexpr uint64_t kFrames = 2000;
  Link link = MakeLink();
  auto sender = MakeFrameSender(link.near, Options());
  auto receiver = MakeFrameReceiver(link.far, Options());
  std::thread producer([&] {
    for (uint64_t i = 0; i < kFrames; ++i) {
      ASSERT_TRUE(sender->Send(FrameNumber(i)).ok());
    }
  });
  Frame frame;
  for (uint64_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(receiver->Next(absl::InfiniteDuration(), frame).ok());
    ASSERT_EQ(frame.microbatch, i);
  }
  producer.join();
  EXPECT_EQ(receiver->counters().frames.load(), kFrames);
  EXPECT_EQ(sender->counters().rows.load(), kFrames);
  EXPECT_EQ(sender->counters().bytes.load(), receiver->counters().bytes.load());
}

TEST(FrameLink, SenderWaitsForCreditAndIsReleasedByClose) {
  Link link = MakeLink();
  auto sender = MakeFrameSender(link.near, Options());
  // Nobody receives: the two buffers of the window fill up.
  ASSERT_TRUE(sender->Send(FrameNumber(0)).ok());
  ASSERT_TRUE(sender->Send(FrameNumber(1)).ok());
  std::thread closer(
      [&] { link.far->Close(absl::UnavailableError("peer left")); });
  EXPECT_EQ(sender->Send(FrameNumber(2)), absl::UnavailableError("peer left"));
  closer.join();
}

TEST(FrameLink, FramesBeforeTheEndAreHandedOutFirst) {
  Link link = MakeLink();
  auto receiver = MakeFrameReceiver(link.far, Options());
  auto sender = MakeFrameSender(link.near, Options());
  ASSERT_TRUE(sender->Send(FrameNumber(7)).ok());
  sender->Close(absl::CancelledError("done"));
  Frame frame;
  EXPECT_TRUE(receiver->Next(absl::Seconds(60), frame).ok());
  EXPECT_EQ(frame.microbatch, 7);
  EXPECT_EQ(receiver->Next(absl::Seconds(60), frame),
            absl::CancelledError("done"));
  EXPECT_EQ(receiver->Next(absl::Seconds(60), frame),
            absl::CancelledError("done"));
}

TEST(FrameLink, DeadlineIsNotTheEnd) {
  Link link = MakeLink();
  auto receiver = MakeFrameReceiver(link.far, Options());
  auto sender = MakeFrameSender(link.near, Options());
  Frame frame;
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(receiver->Next(absl::Milliseconds(1), frame)));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(receiver->Next(absl::ZeroDuration(), frame)));
  ASSERT_TRUE(sender->Send(FrameNumber(1)).ok());
  EXPECT_TRUE(receiver->Next(absl::Seconds(60), frame).ok());
}

TEST(FrameLink, StaleEpochsAreDroppedAndCounted) {
  Link link = MakeLink();
  auto receiver = MakeFrameReceiver(link.far, Options());
  auto sender = MakeFrameSender(link.near, Options());
  Frame stale = FrameNumber(1);
  stale.epoch = 4;
  ASSERT_TRUE(sender->Send(stale).ok());
  ASSERT_TRUE(sender->Send(FrameNumber(2)).ok());
  Frame frame;
  ASSERT_TRUE(receiver->Next(absl::Seconds(60), frame).ok());
  EXPECT_EQ(frame.microbatch, 2);
  EXPECT_EQ(receiver->counters().stale_frames.load(), 1);
  EXPECT_EQ(receiver->counters().frames.load(), 1);
}

TEST(FrameLink, DamagedFrameEndsTheLinkByName) {
  Link link = MakeLink();
  auto receiver = MakeFrameReceiver(link.far, Options());
  auto buffer = link.near->NewBuffer();
  std::memset(buffer->bytes().data(), 0xAB, 100);
  Notification sent;
  link.near->PostSend(
      std::move(buffer), 100,
      [&](absl::Status, std::unique_ptr<FrameBuffer>) { sent.Notify(); });
  Frame frame;
  const absl::Status status = receiver->Next(absl::Seconds(60), frame);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("magic"));
  sent.Wait();
  // The other end learns of it.
  auto sender = MakeFrameSender(link.near, Options());
  while (sender->Send(FrameNumber(1)).ok()) {
  }
  EXPECT_TRUE(absl::IsDataLoss(sender->Send(FrameNumber(1))));
}

TEST(FrameLink, DestroyingBothEndsWithFramesUnderWayIsSafe) {
  for (int i = 0; i < 50; ++i) {
    Link link = MakeLink();
    auto receiver = MakeFrameReceiver(link.far, Options());
    auto sender = MakeFrameSender(link.near, Options());
    link = {};
    ASSERT_TRUE(sender->Send(FrameNumber(1)).ok());
    if (i % 2 == 0) {
      receiver.reset();
    }
    sender.reset();
  }
}

}  // namespace
}  // namespace millrace::transport
