// Frames cross a link without an allocation once it is warm, on every backend,
// counted by a replaced operator new. Provoked by whatever allocates per frame.
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/counted_allocations.h"
#include "transport/frame_link.h"
#include "transport/inproc/inproc_channel.h"
#include "transport/tcp/tcp_link.h"

namespace millrace::transport {
namespace {

using Ends = std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>>;

LinkOptions Options() {
  return {.limits = {.slots = 4,
                     .rows_max = 8,
                     .columns = 64,
                     .positions_max = 100,
                     .vocab_size = 50,
                     .ops_max = 3},
          .epoch = 5,
          .window = 4,
          .checksum = true};
}

Ends MakeTcp() {
  const TcpLinkOptions link = {
      .epoch = 5,
      .segment = 1,
      .token = MakeLinkToken(),
      .frame_bytes_max = Options().limits.FrameBytesMax(),
      .window = 4};
  auto listener = TcpListener::Listen({"127.0.0.1", 0}).value();
  Ends ends;
  std::thread dialer([&] {
    ends.first = DialTcp(listener->endpoint(), link, absl::Seconds(30)).value();
  });
  ends.second = listener->Accept(link, absl::Seconds(30)).value();
  dialer.join();
  return ends;
}

void ExpectNoAllocation(Ends ends) {
  auto sender = MakeFrameSender(std::move(ends.first), Options());
  auto receiver = MakeFrameReceiver(std::move(ends.second), Options());
  const std::vector<float> hidden(8 * 64, 1.5F);
  Frame out;
  out.epoch = 5;
  out.ops = {CloseSequence{1}};
  out.rows.resize(8);
  out.results.resize(8);
  out.tensors = {{TensorKind::kHidden, TensorType::kF32, 8, 64,
                  reinterpret_cast<const std::byte*>(hidden.data())}};
  Frame in;
  const auto pass = [&](int frames) {
    for (int i = 0; i < frames; ++i) {
      ASSERT_TRUE(sender->Send(out).ok());
      ASSERT_TRUE(receiver->Next(absl::Seconds(30), in).ok());
      ASSERT_EQ(in.rows.size(), 8);
    }
  };
  pass(200);
  const int64_t before = ::millrace::testing::NumAllocations();
  pass(200);
  EXPECT_EQ(::millrace::testing::NumAllocations() - before, 0);
}

TEST(LinkAllocation, NoneInProcess) {
  ExpectNoAllocation(MakeInProcPair(
      {.frame_bytes_max = Options().limits.FrameBytesMax(), .window = 4}));
}

TEST(LinkAllocation, NoneOverTcp) { ExpectNoAllocation(MakeTcp()); }

}  // namespace
}  // namespace millrace::transport
