#include "stage-worker/runtime/stage_runner.h"

#include <atomic>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/float_environment.h"
#include "base/status_macros.h"
#include "stage-worker/runtime/stage.h"

namespace millrace::worker {
namespace {

// Step thread and counters around a Stage. The counters are atomics written by
// the step thread, or the owner's while there is none, relaxed: each is read
// for itself.
class LinkedStageRunner final : public StageRunner {
 public:
  explicit LinkedStageRunner(std::unique_ptr<Stage> stage)
      : stage_(std::move(stage)) {
    kv_blocks_total_.store(stage_->sequences().blocks_total(),
                           std::memory_order_relaxed);
  }
  ~LinkedStageRunner() override { Stop(); }

  [[nodiscard]] const StageMemory& memory() const override {
    return stage_->memory();
  }

  void Start(uint64_t epoch, std::unique_ptr<transport::FrameReceiver> upstream,
             std::unique_ptr<transport::FrameSender> downstream,
             std::function<void(absl::Status)> on_end) override {
    Stop();
    Forget();  // takes the cancellation of Stop back
    upstream_ = std::move(upstream);
    downstream_ = std::move(downstream);
    thread_ = std::thread(
        [this, epoch, on_end = std::move(on_end)] { StepLoop(epoch, on_end); });
  }

  void Stop() override {
    if (!thread_.joinable()) {
      return;
    }
    const absl::Status reason = absl::CancelledError("the stage was stopped");
    // The step thread looks at its links between frames only.
    stage_->Cancel();
    upstream_->Close(reason);
    downstream_->Close(reason);
    thread_.join();
    upstream_.reset();
    downstream_.reset();
  }

  [[nodiscard]] StageCounters Counters() const override {
    const auto read = [](const std::atomic<int64_t>& counter) {
      return counter.load(std::memory_order_relaxed);
    };
    StageCounters counters;
    counters.frames = read(frames_);
    counters.rows = read(rows_);
    counters.busy = absl::Nanoseconds(read(busy_ns_));
    counters.wait_for_input = absl::Nanoseconds(read(input_ns_));
    counters.wait_for_credit = absl::Nanoseconds(read(credit_ns_));
    counters.sequences_open = read(sequences_open_);
    counters.kv_blocks_used = read(kv_blocks_used_);
    counters.kv_blocks_total = read(kv_blocks_total_);
    return counters;
  }

 private:
  // Nothing here allocates after the first frames: both Frame objects keep
  // their capacity, and the stage is sized from the plan.
  void StepLoop(uint64_t epoch,
                const std::function<void(absl::Status)>& on_end) noexcept {
    SetFloatEnvironment();
    transport::Frame in;
    transport::Frame out;
    absl::Status status;
    do {
      status = Step(epoch, in, out);
    } while (status.ok());
    upstream_->Close(status);
    downstream_->Close(status);
    Forget();
    if (on_end) {
      on_end(status);
    }
  }

  absl::Status Step(uint64_t epoch, transport::Frame& in,
                    transport::Frame& out) {
    const absl::Duration start = clock_.Monotonic();
    MILLRACE_RETURN_IF_ERROR(upstream_->Next(absl::InfiniteDuration(), in));
    const absl::Duration received = clock_.Monotonic();
    Add(input_ns_, absl::ToInt64Nanoseconds(received - start));
    MILLRACE_DCHECK(in.epoch == epoch);
    MILLRACE_RETURN_IF_ERROR(stage_->Process(in, out));
    const absl::Duration computed = clock_.Monotonic();
    Add(busy_ns_, absl::ToInt64Nanoseconds(computed - received));
    Add(rows_, static_cast<int64_t>(in.rows.size()));
    Add(frames_, 1);
    StoreHeld();
    MILLRACE_RETURN_IF_ERROR(downstream_->Send(out));
    Add(credit_ns_, absl::ToInt64Nanoseconds(clock_.Monotonic() - computed));
    return absl::OkStatus();
  }

  // The sequences of an epoch end with its links. Not while the stage works.
  void Forget() {
    stage_->Reset();
    StoreHeld();
  }

  void StoreHeld() {
    sequences_open_.store(stage_->sequences().num_open(),
                          std::memory_order_relaxed);
    kv_blocks_used_.store(stage_->sequences().blocks_used(),
                          std::memory_order_relaxed);
  }

  static void Add(std::atomic<int64_t>& counter, int64_t value) {
    counter.fetch_add(value, std::memory_order_relaxed);
  }

  const std::unique_ptr<Stage> stage_;
  const SystemClock clock_;
  std::unique_ptr<transport::FrameReceiver> upstream_;
  std::unique_ptr<transport::FrameSender> downstream_;
  std::thread thread_;
  std::atomic<int64_t> frames_{0};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> busy_ns_{0};
  std::atomic<int64_t> input_ns_{0};
  std::atomic<int64_t> credit_ns_{0};
  std::atomic<int64_t> sequences_open_{0};
  std::atomic<int64_t> kv_blocks_used_{0};
  std::atomic<int64_t> kv_blocks_total_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StageRunner>> StageRunner::Create(
    const model::Checkpoint& checkpoint, Options options) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Stage> stage,
                            Stage::Create(checkpoint, options));
  return std::unique_ptr<StageRunner>(new LinkedStageRunner(std::move(stage)));
}

}  // namespace millrace::worker
