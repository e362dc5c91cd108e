#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/frame_link.h"

namespace millrace::worker {

// Bytes over all links that a stage has had; any thread.
struct LinkTotals {
  std::atomic<int64_t> bytes_received{0};
  std::atomic<int64_t> bytes_sent{0};
};

// The same link, counting into totals that outlive it.
std::unique_ptr<transport::FrameReceiver> MeteredReceiver(
    std::unique_ptr<transport::FrameReceiver> receiver,
    std::shared_ptr<LinkTotals> totals);
std::unique_ptr<transport::FrameSender> MeteredSender(
    std::unique_ptr<transport::FrameSender> sender,
    std::shared_ptr<LinkTotals> totals);

}  // namespace millrace::worker
