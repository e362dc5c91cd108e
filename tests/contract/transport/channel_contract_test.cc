// What every channel promises, run against each backend: whole frames in order,
// each post answered exactly once and never inline, back-pressure by window,
// and an end with a reason on both sides. Failures are provoked by full
// windows, closes at every moment and ends that are destroyed.
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/notification.h"
#include "transport/channel.h"
#include "transport/inproc/inproc_channel.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::transport {
namespace {

constexpr uint32_t kWindow = 4;

struct Ends {
  std::shared_ptr<Channel> near;
  std::shared_ptr<Channel> far;
};

Ends MakeInProc(int64_t frame_bytes_max) {
  auto [near, far] =
      MakeInProcPair({.frame_bytes_max = frame_bytes_max, .window = kWindow});
  return {near, far};
}

Ends MakeTcp(int64_t frame_bytes_max) {
  const TcpLinkOptions link = {.epoch = 3,
                               .segment = 1,
                               .token = MakeLinkToken(),
                               .frame_bytes_max = frame_bytes_max,
                               .window = kWindow};
  auto listener = TcpListener::Listen({"127.0.0.1", 0}).value();
  Ends ends;
  std::thread dialer([&] {
    ends.near = DialTcp(listener->endpoint(), link, absl::Seconds(30)).value();
  });
  ends.far = listener->Accept(link, absl::Seconds(30)).value();
  dialer.join();
  return ends;
}

struct Backend {
  const char* name;
  std::function<Ends(int64_t)> make;
};

// Collects completions; Wait blocks until so many came.
class Log {
 public:
  struct Entry {
    absl::Status status;
    int64_t bytes = 0;
    std::unique_ptr<FrameBuffer> buffer;
    std::thread::id thread;
  };

  Channel::SendCallback Send() {
    return [this](absl::Status status, std::unique_ptr<FrameBuffer> buffer) {
      Add({std::move(status), 0, std::move(buffer), {}});
    };
  }
  Channel::ReceiveCallback Receive() {
    return [this](absl::StatusOr<int64_t> bytes,
                  std::unique_ptr<FrameBuffer> buffer) {
      Add({bytes.status(), bytes.ok() ? *bytes : 0, std::move(buffer), {}});
    };
  }
  void Wait(size_t count) {
    MutexLock lock(mutex_);
    while (entries_.size() < count) {
      changed_.Wait(mutex_);
    }
  }
  // After Wait: nothing else comes.
  std::vector<Entry>& entries() { return entries_; }
  size_t size() {
    MutexLock lock(mutex_);
    return entries_.size();
  }

 private:
  void Add(Entry entry) {
    entry.thread = std::this_thread::get_id();
    MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> entries_;
};

std::unique_ptr<FrameBuffer> Filled(Channel& channel, int64_t bytes, int seed) {
  auto buffer = channel.NewBuffer();
  for (int64_t i = 0; i < bytes; ++i) {
    buffer->bytes()[static_cast<size_t>(i)] =
        static_cast<std::byte>(i * 7 + i / 256 + seed);
  }
  return buffer;
}

bool Holds(FrameBuffer& buffer, int64_t bytes, int seed) {
  for (int64_t i = 0; i < bytes; ++i) {
    if (buffer.bytes()[static_cast<size_t>(i)] !=
        static_cast<std::byte>(i * 7 + i / 256 + seed)) {
      return false;
    }
  }
  return true;
}

void PostFilled(Channel& channel, int64_t bytes, int seed, Log& log) {
  channel.PostSend(Filled(channel, bytes, seed), bytes, log.Send());
}

class ChannelContract : public ::testing::TestWithParam<Backend> {
 protected:
  Ends Make(int64_t frame_bytes_max = 4096) {
    return GetParam().make(frame_bytes_max);
  }
};

TEST_P(ChannelContract, BuffersAreLargeAndAligned) {
  Ends ends = Make(1000);
  EXPECT_EQ(ends.near->frame_bytes_max(), 1000);
  auto buffer = ends.far->NewBuffer();
  EXPECT_GE(buffer->bytes().size(), 1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->bytes().data()) % 64, 0);
}

TEST_P(ChannelContract, FramesOfEverySizeArriveWholeBothWays) {
  Ends ends = Make();
  const std::vector<int64_t> sizes = {0, 1, 15, 16, 17, 4095, 4096};
  for (Channel* from : {ends.near.get(), ends.far.get()}) {
    Channel* to = from == ends.near.get() ? ends.far.get() : ends.near.get();
    for (const int64_t size : sizes) {
      Log sent;
      Log received;
      to->PostReceive(to->NewBuffer(), received.Receive());
      PostFilled(*from, size, 3, sent);
      received.Wait(1);
      sent.Wait(1);
      EXPECT_EQ(received.entries()[0].status, absl::OkStatus());
      ASSERT_EQ(received.entries()[0].bytes, size);
      EXPECT_TRUE(Holds(*received.entries()[0].buffer, size, 3));
      EXPECT_EQ(sent.entries()[0].status, absl::OkStatus());
      EXPECT_NE(sent.entries()[0].buffer, nullptr);
    }
  }
}

TEST_P(ChannelContract, ManySmallFramesStayInOrder) {
  constexpr int kFrames = 3000;
  Ends ends = Make(64);
  std::atomic<int> received{0};
  std::atomic<int> wrong{0};
  Notification done;
  // Each arrival posts its buffer again, from the callback.
  std::function<void(std::unique_ptr<FrameBuffer>)> post =
      [&](std::unique_ptr<FrameBuffer> buffer) {
        ends.far->PostReceive(std::move(buffer),
                              [&](absl::StatusOr<int64_t> bytes,
                                  std::unique_ptr<FrameBuffer> got) {
                                if (!bytes.ok()) {
                                  return;
                                }
                                const int number = received++;
                                wrong += Holds(*got, *bytes, number) ? 0 : 1;
                                wrong += *bytes == number % 60 + 1 ? 0 : 1;
                                post(std::move(got));
                                // Last: the test ends the channels next.
                                if (number + 1 == kFrames) {
                                  done.Notify();
                                }
                              });
      };
  for (uint32_t i = 0; i < kWindow; ++i) {
    post(ends.far->NewBuffer());
  }
  Log sent;
  for (int i = 0; i < kFrames; ++i) {
    if (i >= static_cast<int>(kWindow)) {
      sent.Wait(static_cast<size_t>(i) + 1 - kWindow);
    }
    PostFilled(*ends.near, i % 60 + 1, i, sent);
  }
  done.Wait();
  EXPECT_EQ(wrong.load(), 0);
  Log ended;
  ends.near->Close(absl::CancelledError("over"));
  ends.near->PostSend(ends.near->NewBuffer(), 1, ended.Send());
  ended.Wait(1);
  // The far end holds callbacks into this frame until it is gone.
  ends = {};
}

TEST_P(ChannelContract, BigFramesCrossInBothDirectionsAtOnce) {
  constexpr int64_t kBytes = 6 << 20;
  Ends ends = Make(kBytes);
  Log sent[2];
  Log received[2];
  Channel* const channels[2] = {ends.near.get(), ends.far.get()};
  for (int end = 0; end < 2; ++end) {
    for (int i = 0; i < 3; ++i) {
      channels[end]->PostReceive(channels[end]->NewBuffer(),
                                 received[end].Receive());
    }
  }
  for (int i = 0; i < 3; ++i) {
    for (int end = 0; end < 2; ++end) {
      PostFilled(*channels[end], kBytes - i, 10 * end + i, sent[end]);
    }
  }
  for (int end = 0; end < 2; ++end) {
    received[end].Wait(3);
    sent[end].Wait(3);
    for (int i = 0; i < 3; ++i) {
      Log::Entry& entry = received[end].entries()[static_cast<size_t>(i)];
      ASSERT_EQ(entry.status, absl::OkStatus());
      ASSERT_EQ(entry.bytes, kBytes - i);
      EXPECT_TRUE(Holds(*entry.buffer, entry.bytes, 10 * (1 - end) + i));
    }
  }
}

TEST_P(ChannelContract, CallbacksNeverRunOnTheCallersThread) {
  Ends ends = Make();
  Log sent;
  Log received;
  // Matched at once from both sides, refused, and after the end.
  ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
  PostFilled(*ends.near, 10, 0, sent);
  PostFilled(*ends.near, 10, 0, sent);
  ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
  sent.Wait(2);
  received.Wait(2);
  ends.near->Close(absl::AbortedError("over"));
  PostFilled(*ends.near, 10, 0, sent);
  ends.near->PostReceive(ends.near->NewBuffer(), received.Receive());
  sent.Wait(3);
  received.Wait(3);
  for (Log* log : {&sent, &received}) {
    for (const Log::Entry& entry : log->entries()) {
      EXPECT_NE(entry.thread, std::this_thread::get_id());
    }
  }
}

TEST_P(ChannelContract, FramesWaitForTheWindowAndOneMoreIsRefused) {
  Ends ends = Make();
  Log sent;
  Log refused;
  for (uint32_t i = 0; i < kWindow; ++i) {
    PostFilled(*ends.near, 100, static_cast<int>(i), sent);
  }
  PostFilled(*ends.near, 100, 99, refused);
  refused.Wait(1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.entries()[0].status));
  EXPECT_NE(refused.entries()[0].buffer, nullptr);
  EXPECT_EQ(sent.size(), 0);
  Log received;
  for (uint32_t i = 0; i < kWindow; ++i) {
    ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
    received.Wait(i + 1);
    EXPECT_TRUE(Holds(*received.entries()[i].buffer, 100, static_cast<int>(i)));
  }
  sent.Wait(kWindow);
}

TEST_P(ChannelContract, ReceivesBeyondTheWindowAreRefused) {
  Ends ends = Make();
  Log received;
  Log refused;
  for (uint32_t i = 0; i < kWindow; ++i) {
    ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
  }
  ends.far->PostReceive(ends.far->NewBuffer(), refused.Receive());
  refused.Wait(1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.entries()[0].status));
  ends.far->Close(absl::CancelledError("over"));
  received.Wait(kWindow);
}

TEST_P(ChannelContract, CloseAnswersEverythingOnceWithTheReasonOnBothSides) {
  const absl::Status reason = absl::AbortedError("stage 3 is leaving");
  Ends ends = Make();
  Log near;
  Log far;
  for (uint32_t i = 0; i < kWindow; ++i) {
    ends.near->PostReceive(ends.near->NewBuffer(), near.Receive());
    ends.far->PostReceive(ends.far->NewBuffer(), far.Receive());
  }
  ends.near->Close(reason);
  ends.near->Close(absl::InternalError("a second reason"));
  near.Wait(kWindow);
  far.Wait(kWindow);
  PostFilled(*ends.near, 1, 0, near);
  PostFilled(*ends.far, 1, 0, far);
  ends.far->PostReceive(ends.far->NewBuffer(), far.Receive());
  near.Wait(kWindow + 1);
  far.Wait(kWindow + 2);
  ends = {};
  EXPECT_EQ(near.size(), kWindow + 1);
  EXPECT_EQ(far.size(), kWindow + 2);
  for (Log* log : {&near, &far}) {
    for (const Log::Entry& entry : log->entries()) {
      EXPECT_EQ(entry.status, reason);
      EXPECT_NE(entry.buffer, nullptr);
    }
  }
}

TEST_P(ChannelContract, CloseAnswersFramesThatWaitForCredit) {
  Ends ends = Make();
  Log sent;
  for (uint32_t i = 0; i < kWindow; ++i) {
    PostFilled(*ends.near, 100, 0, sent);
  }
  ends.far->Close(absl::UnavailableError("far end leaves"));
  sent.Wait(kWindow);
  for (const Log::Entry& entry : sent.entries()) {
    EXPECT_EQ(entry.status, absl::UnavailableError("far end leaves"));
  }
}

TEST_P(ChannelContract, FramesSentBeforeTheCloseArrive) {
  Ends ends = Make();
  Log sent;
  Log received;
  ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
  ends.far->PostReceive(ends.far->NewBuffer(), received.Receive());
  PostFilled(*ends.near, 1000, 5, sent);
  sent.Wait(1);
  ends.near->Close(absl::CancelledError("done"));
  received.Wait(2);
  EXPECT_EQ(received.entries()[0].status, absl::OkStatus());
  EXPECT_TRUE(Holds(*received.entries()[0].buffer, 1000, 5));
  EXPECT_EQ(received.entries()[1].status, absl::CancelledError("done"));
}

TEST_P(ChannelContract, DestroyedEndIsNoticed) {
  Ends ends = Make();
  Log far;
  ends.far->PostReceive(ends.far->NewBuffer(), far.Receive());
  ends.near.reset();
  far.Wait(1);
  EXPECT_TRUE(absl::IsUnavailable(far.entries()[0].status))
      << far.entries()[0].status;
}

// Posts from both sides race with a close; every post is answered once.
// Nothing else wakes the channel: what is posted at the moment it ends must not
// be left lying.
TEST_P(ChannelContract, ReceivesPostedWhileItEndsAreAnswered) {
  const SystemClock clock;
  for (int round = 0; round < 600; ++round) {
    Ends ends = Make(256);
    Log received;
    for (uint32_t i = 0; i + 1 < kWindow; ++i) {
      ends.near->PostReceive(ends.near->NewBuffer(), received.Receive());
    }
    auto buffer = ends.near->NewBuffer();
    ends.far->Close(absl::CancelledError("race"));
    // The other end's word takes tens of microseconds.
    const absl::Duration post_at =
        clock.Monotonic() + absl::Microseconds(round % 150);
    while (clock.Monotonic() < post_at) {
    }
    ends.near->PostReceive(std::move(buffer), received.Receive());
    received.Wait(kWindow);
    EXPECT_EQ(received.size(), kWindow);
  }
}

TEST_P(ChannelContract, EveryPostIsAnsweredOnceUnderRacingCloses) {
  for (int round = 0; round < 40; ++round) {
    Ends ends = Make(256);
    std::atomic<int> posted{0};
    std::atomic<int> answered{0};
    const auto traffic = [&](Channel& channel) {
      for (int i = 0; i < 50; ++i) {
        posted += 2;
        channel.PostReceive(channel.NewBuffer(),
                            [&](absl::StatusOr<int64_t>,
                                std::unique_ptr<FrameBuffer>) { ++answered; });
        channel.PostSend(
            channel.NewBuffer(), 200,
            [&](absl::Status, std::unique_ptr<FrameBuffer>) { ++answered; });
      }
    };
    std::thread near([&] { traffic(*ends.near); });
    std::thread far([&] { traffic(*ends.far); });
    std::thread closer([&] {
      (round % 2 == 0 ? ends.near : ends.far)
          ->Close(absl::CancelledError("race"));
    });
    near.join();
    far.join();
    closer.join();
    ends = {};  // the last callbacks have run when both ends are gone
    EXPECT_EQ(answered.load(), posted.load());
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ChannelContract,
                         ::testing::Values(Backend{"inproc", MakeInProc},
                                           Backend{"tcp", MakeTcp}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace millrace::transport
