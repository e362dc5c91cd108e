#include "transport/link_meter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "transport/byte_order.h"

namespace millrace::transport {
namespace {

// As large as the hidden states of some decoding sequences, and what bandwidth
// is measured with: the share of a frame's own cost in it is small.
constexpr int64_t kFrameBytes = int64_t{256} << 10;
constexpr uint32_t kWindow = 8;
// Frames that one fetch may ask for.
constexpr int64_t kFramesMax = 4096;
// Frames of one round take about this long each way.
constexpr double kWindowSeconds = 0.05;
constexpr int kPings = 64;
// Small posts that nobody has measured yet still warm what lies between.
constexpr int kWarmPings = 8;
constexpr absl::Duration kCancelLag = absl::Milliseconds(100);

// First bytes of every frame, little-endian; README.md has the table.
struct Header {
  enum Kind : uint32_t { kPing = 1, kData = 2, kFlush = 3, kFetch = 4 };
  uint32_t kind = 0;
  uint32_t count = 0;  // of frames that a fetch asks for
};
constexpr int64_t kHeaderBytes = 16;

absl::Status Broken() {
  return MakeError(absl::StatusCode::kDataLoss, "measuring link",
                   "the peer sent what no meter sends");
}

// A channel with calls that wait. One thread.
class BlockingLink {
 public:
  BlockingLink(std::shared_ptr<Channel> channel, absl::Duration time,
               const std::atomic<bool>& cancelled);
  ~BlockingLink() {
    channel_->Close(MakeError(absl::StatusCode::kCancelled, "measuring link",
                              "the measurement is over"));
  }
  BlockingLink(const BlockingLink&) = delete;
  BlockingLink& operator=(const BlockingLink&) = delete;

  absl::Status Send(const Header& header, int64_t bytes);
  absl::StatusOr<Header> Receive();
  [[nodiscard]] absl::Duration Now() const { return clock_.Monotonic(); }

 private:
  struct Received {
    absl::StatusOr<int64_t> bytes;
    std::unique_ptr<FrameBuffer> buffer;
  };
  struct Sent {
    absl::Status status;
    std::unique_ptr<FrameBuffer> buffer;
  };
  // What callbacks reach; outlives the link while the channel holds posts.
  struct Queues {
    BoundedQueue<Received> received{2 * kWindow};
    BoundedQueue<Sent> free{2 * kWindow};
  };

  void PostReceive(std::unique_ptr<FrameBuffer> buffer);
  template <typename T>
  absl::StatusOr<T> Take(BoundedQueue<T>& queue) const;

  const SystemClock clock_;
  const std::shared_ptr<Channel> channel_;
  const absl::Duration end_;
  const std::atomic<bool>& cancelled_;
  const std::shared_ptr<Queues> queues_ = std::make_shared<Queues>();
};

BlockingLink::BlockingLink(std::shared_ptr<Channel> channel,
                           absl::Duration time,
                           const std::atomic<bool>& cancelled)
    : channel_(std::move(channel)),
      end_(clock_.Monotonic() + time),
      cancelled_(cancelled) {
  for (uint32_t i = 0; i < kWindow; ++i) {
    PostReceive(channel_->NewBuffer());
    (void)queues_->free.TryPush({absl::OkStatus(), channel_->NewBuffer()});
  }
}

void BlockingLink::PostReceive(std::unique_ptr<FrameBuffer> buffer) {
  channel_->PostReceive(
      std::move(buffer),
      [queues = queues_](absl::StatusOr<int64_t> bytes,
                         std::unique_ptr<FrameBuffer> filled) {
        // There is room for all buffers that there are.
        (void)queues->received.TryPush({std::move(bytes), std::move(filled)});
      });
}

template <typename T>
absl::StatusOr<T> BlockingLink::Take(BoundedQueue<T>& queue) const {
  for (;;) {
    if (std::optional<T> item =
            queue.PopFor(std::min(kCancelLag, end_ - Now()))) {
      return *std::move(item);
    }
    if (cancelled_.load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted while measuring");
    }
    if (Now() >= end_) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, "measuring link",
                       "the peer does not answer in time");
    }
  }
}

absl::Status BlockingLink::Send(const Header& header, int64_t bytes) {
  MILLRACE_ASSIGN_OR_RETURN(Sent sent, Take(queues_->free));
  MILLRACE_RETURN_IF_ERROR(sent.status);
  std::byte* const to = sent.buffer->bytes().data();
  std::memset(to, 0, kHeaderBytes);
  StoreLe<uint32_t>(to, header.kind);
  StoreLe<uint32_t>(to + sizeof(uint32_t), header.count);
  channel_->PostSend(
      std::move(sent.buffer), bytes,
      [queues = queues_](absl::Status status,
                         std::unique_ptr<FrameBuffer> buffer) {
        (void)queues->free.TryPush({std::move(status), std::move(buffer)});
      });
  return absl::OkStatus();
}

absl::StatusOr<Header> BlockingLink::Receive() {
  MILLRACE_ASSIGN_OR_RETURN(Received received, Take(queues_->received));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t bytes, std::move(received.bytes));
  if (bytes < kHeaderBytes) {
    return Broken();
  }
  const std::byte* const from = received.buffer->bytes().data();
  const Header header = {LoadLe<uint32_t>(from),
                         LoadLe<uint32_t>(from + sizeof(uint32_t))};
  PostReceive(std::move(received.buffer));
  return header;
}

// The measuring end.
class Meter {
 public:
  explicit Meter(BlockingLink& link) : link_(link) {}

  absl::Status Round(LinkRounds& rounds);
  absl::Status Warm() { return Pings(kWarmPings).status(); }

 private:
  // Half of the median round trip.
  absl::StatusOr<double> Pings(int count);
  // Seconds that so many frames take, and the answer after them.
  absl::StatusOr<double> TimeOut(int64_t frames);
  absl::StatusOr<double> TimeIn(int64_t frames);
  absl::Status AwaitAnswer(Header::Kind kind);
  // Bytes per second of whichever direction `time` measures.
  template <typename Time>
  absl::StatusOr<double> Bandwidth(const Time& time);

  BlockingLink& link_;
};

absl::Status Meter::AwaitAnswer(Header::Kind kind) {
  MILLRACE_ASSIGN_OR_RETURN(const Header header, link_.Receive());
  return header.kind == kind ? absl::OkStatus() : Broken();
}

absl::StatusOr<double> Meter::Pings(int count) {
  std::vector<absl::Duration> trips;
  for (int i = 0; i < count; ++i) {
    const absl::Duration start = link_.Now();
    MILLRACE_RETURN_IF_ERROR(link_.Send({Header::kPing, 0}, kHeaderBytes));
    MILLRACE_RETURN_IF_ERROR(AwaitAnswer(Header::kPing));
    trips.push_back(link_.Now() - start);
  }
  std::nth_element(trips.begin(), trips.begin() + count / 2, trips.end());
  return absl::ToDoubleSeconds(trips[static_cast<size_t>(count / 2)]) / 2;
}

absl::StatusOr<double> Meter::TimeOut(int64_t frames) {
  const absl::Duration start = link_.Now();
  for (int64_t i = 0; i < frames; ++i) {
    MILLRACE_RETURN_IF_ERROR(link_.Send({Header::kData, 0}, kFrameBytes));
  }
  MILLRACE_RETURN_IF_ERROR(link_.Send({Header::kFlush, 0}, kHeaderBytes));
  MILLRACE_RETURN_IF_ERROR(AwaitAnswer(Header::kFlush));
  return absl::ToDoubleSeconds(link_.Now() - start);
}

absl::StatusOr<double> Meter::TimeIn(int64_t frames) {
  const absl::Duration start = link_.Now();
  MILLRACE_RETURN_IF_ERROR(link_.Send(
      {Header::kFetch, static_cast<uint32_t>(frames)}, kHeaderBytes));
  for (int64_t i = 0; i < frames; ++i) {
    MILLRACE_RETURN_IF_ERROR(AwaitAnswer(Header::kData));
  }
  return absl::ToDoubleSeconds(link_.Now() - start);
}

template <typename Time>
absl::StatusOr<double> Meter::Bandwidth(const Time& time) {
  int64_t frames = 1;
  MILLRACE_ASSIGN_OR_RETURN(double seconds, time(frames));
  while (seconds < kWindowSeconds / 2 && frames < kFramesMax) {
    const double more = static_cast<double>(frames) * kWindowSeconds / seconds;
    frames = std::clamp(static_cast<int64_t>(more), frames + 1,
                        std::min(kFramesMax, frames * 8));
    MILLRACE_ASSIGN_OR_RETURN(seconds, time(frames));
  }
  return static_cast<double>(frames * kFrameBytes) / seconds;
}

absl::Status Meter::Round(LinkRounds& rounds) {
  MILLRACE_ASSIGN_OR_RETURN(const double latency, Pings(kPings));
  MILLRACE_ASSIGN_OR_RETURN(const double out, Bandwidth([this](int64_t frames) {
                              return TimeOut(frames);
                            }));
  MILLRACE_ASSIGN_OR_RETURN(const double in, Bandwidth([this](int64_t frames) {
                              return TimeIn(frames);
                            }));
  rounds.latency_s.push_back(latency);
  rounds.bandwidth_out.push_back(out);
  rounds.bandwidth_in.push_back(in);
  return absl::OkStatus();
}

absl::Status Answer(BlockingLink& link, const Header& header) {
  switch (header.kind) {
    case Header::kPing:
    case Header::kFlush:
      return link.Send({header.kind, 0}, kHeaderBytes);
    case Header::kData:
      return absl::OkStatus();
    case Header::kFetch:
      break;
    default:
      return Broken();
  }
  if (header.count > kFramesMax) {
    return Broken();
  }
  for (uint32_t i = 0; i < header.count; ++i) {
    MILLRACE_RETURN_IF_ERROR(link.Send({Header::kData, 0}, kFrameBytes));
  }
  return absl::OkStatus();
}

}  // namespace

TcpLinkOptions MeteredLink(const LinkToken& token) {
  // Epochs of pipelines begin at 1.
  return {.epoch = 0,
          .segment = 0,
          .token = token,
          .frame_bytes_max = kFrameBytes,
          .window = kWindow};
}

absl::StatusOr<LinkRounds> MeterLink(std::shared_ptr<Channel> channel,
                                     int rounds, absl::Duration time,
                                     const std::atomic<bool>& cancelled) {
  BlockingLink link(std::move(channel), 2 * time, cancelled);
  Meter meter(link);
  LinkRounds measured;
  const absl::Duration end = link.Now() + time;
  MILLRACE_RETURN_IF_ERROR(meter.Warm());
  for (int i = 0; i < std::min(rounds, kLinkRoundsMax); ++i) {
    if (i > 0 && link.Now() >= end) {
      break;
    }
    const absl::Status status = meter.Round(measured);
    // A later round that does not end in time is left out.
    if (i > 0 && absl::IsDeadlineExceeded(status)) {
      break;
    }
    MILLRACE_RETURN_IF_ERROR(status);
  }
  return measured;
}

absl::Status AnswerMeter(std::shared_ptr<Channel> channel, absl::Duration time,
                         const std::atomic<bool>& cancelled) {
  BlockingLink link(std::move(channel), time, cancelled);
  for (;;) {
    MILLRACE_ASSIGN_OR_RETURN(const Header header, link.Receive());
    MILLRACE_RETURN_IF_ERROR(Answer(link, header));
  }
}

}  // namespace millrace::transport
