#include "stage-worker/server/metered_link.h"

#include <utility>

namespace millrace::worker {
namespace {

// Adds what `now` has grown by since the last call; the link's own thread.
void AddGrowth(std::atomic<int64_t>& total, int64_t now, int64_t& seen) {
  total.fetch_add(now - seen, std::memory_order_relaxed);
  seen = now;
}

class Receiver final : public transport::FrameReceiver {
 public:
  Receiver(std::unique_ptr<transport::FrameReceiver> inner,
           std::shared_ptr<LinkTotals> totals)
      : inner_(std::move(inner)), totals_(std::move(totals)) {}

  absl::Status Next(absl::Duration timeout, transport::Frame& frame) override {
    absl::Status status = inner_->Next(timeout, frame);
    AddGrowth(totals_->bytes_received, inner_->counters().bytes, seen_);
    return status;
  }
  void Close(absl::Status reason) override { inner_->Close(std::move(reason)); }
  [[nodiscard]] const transport::LinkCounters& counters() const override {
    return inner_->counters();
  }

 private:
  const std::unique_ptr<transport::FrameReceiver> inner_;
  const std::shared_ptr<LinkTotals> totals_;
  int64_t seen_ = 0;
};

class Sender final : public transport::FrameSender {
 public:
  Sender(std::unique_ptr<transport::FrameSender> inner,
         std::shared_ptr<LinkTotals> totals)
      : inner_(std::move(inner)), totals_(std::move(totals)) {}

  absl::Status Send(const transport::Frame& frame) override {
    absl::Status status = inner_->Send(frame);
    AddGrowth(totals_->bytes_sent, inner_->counters().bytes, seen_);
    return status;
  }
  void Close(absl::Status reason) override { inner_->Close(std::move(reason)); }
  [[nodiscard]] const transport::LinkCounters& counters() const override {
    return inner_->counters();
  }

 private:
  const std::unique_ptr<transport::FrameSender> inner_;
  const std::shared_ptr<LinkTotals> totals_;
  int64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<transport::FrameReceiver> MeteredReceiver(
    std::unique_ptr<transport::FrameReceiver> receiver,
    std::shared_ptr<LinkTotals> totals) {
  return std::make_unique<Receiver>(std::move(receiver), std::move(totals));
}

std::unique_ptr<transport::FrameSender> MeteredSender(
    std::unique_ptr<transport::FrameSender> sender,
    std::shared_ptr<LinkTotals> totals) {
  return std::make_unique<Sender>(std::move(sender), std::move(totals));
}

}  // namespace millrace::worker
