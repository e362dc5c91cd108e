#include "tests/unit/coordinator/membership/fake_stage.h"

#include <thread>
#include <utility>
#include <vector>

#include "transport/frame_link.h"

namespace millrace {
namespace {

class FakeStageRunner final : public worker::StageRunner {
 public:
  FakeStageRunner(bool last, int64_t columns) : last_(last), hidden_(columns) {
    memory_.weights_bytes = 100;
  }
  ~FakeStageRunner() override { Stop(); }

  const worker::StageMemory& memory() const override { return memory_; }

  void Start(uint64_t, std::unique_ptr<transport::FrameReceiver> upstream,
             std::unique_ptr<transport::FrameSender> downstream,
             std::function<void(absl::Status)> on_end) override {
    Stop();
    upstream_ = std::move(upstream);
    downstream_ = std::move(downstream);
    thread_ = std::thread([this, on_end = std::move(on_end)] {
      absl::Status status;
      do {
        status = Step();
      } while (status.ok());
      upstream_->Close(status);
      downstream_->Close(status);
      on_end(status);
    });
  }
  void Stop() override {
    if (thread_.joinable()) {
      upstream_->Close(absl::CancelledError("stopped"));
      downstream_->Close(absl::CancelledError("stopped"));
      thread_.join();
      upstream_.reset();
      downstream_.reset();
    }
  }
  worker::StageCounters Counters() const override {
    worker::StageCounters counters;
    counters.frames = frames_;
    return counters;
  }

 private:
  absl::Status Step() {
    transport::Frame in;
    if (auto status = upstream_->Next(absl::InfiniteDuration(), in);
        !status.ok()) {
      return status;
    }
    ++frames_;
    transport::Frame out;
    out.epoch = in.epoch;
    out.microbatch = in.microbatch;
    out.segment = in.segment + 1;
    for (transport::Row row : in.rows) {
      ++row.token;
      if (last_) {
        transport::Result result;
        result.slot = row.slot;
        result.position = row.position;
        result.token = row.token;
        out.results.push_back(result);
      } else {
        out.rows.push_back(row);
      }
    }
    hidden_.resize(hidden_.size());
    if (!last_) {
      out.tensors = {{transport::TensorKind::kHidden,
                      transport::TensorType::kF32,
                      static_cast<uint32_t>(out.rows.size()),
                      static_cast<uint32_t>(hidden_.size()), Hidden(out)}};
    }
    return downstream_->Send(out);
  }
  const std::byte* Hidden(const transport::Frame& frame) {
    rows_.assign(frame.rows.size() * hidden_.size(), 1.0F);
    return reinterpret_cast<const std::byte*>(rows_.data());
  }

  const bool last_;
  std::vector<float> hidden_;
  std::vector<float> rows_;
  worker::StageMemory memory_;
  std::unique_ptr<transport::FrameReceiver> upstream_;
  std::unique_ptr<transport::FrameSender> downstream_;
  std::thread thread_;
  std::atomic<int64_t> frames_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<worker::StageRunner>> FakeStageFactory::Create(
    const control::Load& load,
    std::function<void(const worker::LoadProgress&)> progress,
    std::function<bool()> cancelled) {
  ++created_;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) {
      return std::exchange(failure_, absl::OkStatus());
    }
  }
  while (hang_) {
    if (cancelled()) {
      return absl::CancelledError("cancelled");
    }
    std::this_thread::yield();
  }
  progress({50, 100});
  return std::make_unique<FakeStageRunner>(load.stage.holds_head, 6);
}

}  // namespace millrace
