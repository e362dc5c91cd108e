#include "coordinator/core/pipeline_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/error.h"

namespace millrace::coordinator {

using transport::Frame;

PipelineCore::PipelineCore(const CoreConfig& config)
    : config_(config.WithDefaults()),
      ledger_(config_),
      waiting_(config_.queue),
      scheduler_(config_),
      by_slot_(static_cast<size_t>(ledger_.slots())),
      not_ready_reason_("no stage is connected yet") {
  for (size_t slot = by_slot_.size(); slot-- > 0;) {
    free_slots_.push_back(static_cast<uint32_t>(slot));
  }
  // One for each of two rows of every sequence: more only where prompts start.
  notices_.reserve(2 * by_slot_.size());
}

absl::StatusOr<RequestId> PipelineCore::Submit(absl::Duration now,
                                               GenerateRequest request) {
  Advance(now);
  if (absl::Status status = Validate(request); !status.ok()) {
    return Refuse(std::move(status));
  }
  if (!connected_ || !accepting_) {
    return Refuse(MakeError(
        absl::StatusCode::kUnavailable, "pipeline",
        accepting_ ? not_ready_reason_ : "the server is shutting down"));
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->num_prompt = static_cast<int64_t>(request.prompt.size());
  sequence->positions = sequence->num_prompt + request.tokens_max;
  const bool at_once = waiting_.empty() && !free_slots_.empty() &&
                       !ledger_.BindingStage(sequence->positions).has_value();
  if (!at_once && !waiting_.HasRoom(sequence->positions)) {
    return Refuse(QueueIsFull(now, sequence->positions));
  }
  sequence->id = next_id_++;
  sequence->tokens = std::move(request.prompt);
  sequence->request = std::move(request);
  sequence->queued_at = now;
  const RequestId id = sequence->id;
  waiting_.Push(sequence.get());
  sequences_.emplace(id, std::move(sequence));
  Admit();
  return id;
}

absl::Status PipelineCore::Refuse(absl::Status status) {
  ++counters_.refused;
  return status;
}

void PipelineCore::Cancel(absl::Duration now, RequestId id) {
  Advance(now);
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) {
    return;
  }
  ++counters_.cancelled;
  notices_.push_back(Notice{
      .id = id, .what = absl::CancelledError("the request was cancelled")});
  End(now, *found->second);
  Admit();
}

void PipelineCore::FailAll(absl::Duration now, const absl::Status& reason) {
  Advance(now);
  std::vector<Sequence*> all;
  for (const auto& [id, sequence] : sequences_) {
    all.push_back(sequence.get());
  }
  std::sort(all.begin(), all.end(),
            [](const Sequence* a, const Sequence* b) { return a->id < b->id; });
  for (Sequence* sequence : all) {
    notices_.push_back(Notice{.id = sequence->id, .what = reason});
    absl::IsCancelled(reason) ? ++counters_.cancelled : ++counters_.failed;
    End(now, *sequence);
  }
}

void PipelineCore::StopIntake() { accepting_ = false; }

void PipelineCore::Connect(absl::Duration now, uint64_t epoch) {
  Advance(now);
  MILLRACE_CHECK(!connected_ && epoch > epoch_);
  epoch_ = epoch;
  connected_ = true;
  not_ready_reason_.clear();
  Admit();
}

void PipelineCore::Disconnect(absl::Duration now, const absl::Status& reason) {
  Advance(now);
  not_ready_reason_ = std::string(reason.message());
  if (!connected_) {
    return;
  }
  connected_ = false;
  for (Sequence* sequence : by_slot_) {
    if (sequence != nullptr) {
      Fail(now, *sequence,
           MakeError(absl::StatusCode::kUnavailable, "pipeline",
                     not_ready_reason_, "send the request again"));
    }
  }
  scheduler_.Reset();
  ledger_.Reset();
  free_slots_.clear();
  for (size_t slot = by_slot_.size(); slot-- > 0;) {
    free_slots_.push_back(static_cast<uint32_t>(slot));
  }
}

void PipelineCore::TimePassed(absl::Duration now) {
  Advance(now);
  for (auto deadline = waiting_.Deadline(); deadline && *deadline <= now;
       deadline = waiting_.Deadline()) {
    Sequence& oldest = *waiting_.front();
    absl::Status error =
        QueueFull(absl::StrCat("no room within ",
                               absl::FormatDuration(config_.queue.age_max),
                               ": ", BindingShortage(oldest.positions)),
                  waiting_.RetryAfterSeconds(now));
    Fail(now, oldest, std::move(error));
    Admit();
  }
}

std::optional<absl::Duration> PipelineCore::NextDeadline() const {
  return waiting_.Deadline();
}

bool PipelineCore::PollFrame(absl::Duration now, Frame& frame) {
  Advance(now);
  if (!connected_ || !scheduler_.Compose(now, frame)) {
    return false;
  }
  frame.epoch = epoch_;
  frame.segment = 0;
  return true;
}

void PipelineCore::TakeNotices(std::vector<Notice>& out) {
  out.insert(out.end(), std::make_move_iterator(notices_.begin()),
             std::make_move_iterator(notices_.end()));
  notices_.clear();
}

void PipelineCore::Admit() {
  while (connected_ && !waiting_.empty() && !free_slots_.empty()) {
    Sequence& sequence = *waiting_.front();
    if (ledger_.BindingStage(sequence.positions).has_value()) {
      return;
    }
    waiting_.PopFront();
    ledger_.Reserve(sequence.positions);
    sequence.slot = free_slots_.back();
    free_slots_.pop_back();
    by_slot_[sequence.slot] = &sequence;
    // All of it now, so that nothing is allocated per token.
    sequence.tokens.reserve(static_cast<size_t>(sequence.positions));
    sequence.state = SequenceState::kPrefill;
    notices_.push_back(Notice{.id = sequence.id, .what = Started{}});
    scheduler_.AddPrefill(&sequence);
  }
}

void PipelineCore::Finish(absl::Duration now, Sequence& sequence,
                          FinishReason reason) {
  ++counters_.finished;
  notices_.push_back(Notice{.id = sequence.id, .what = reason});
  End(now, sequence);
}

void PipelineCore::Fail(absl::Duration now, Sequence& sequence,
                        absl::Status error) {
  ++counters_.failed;
  notices_.push_back(Notice{.id = sequence.id, .what = std::move(error)});
  End(now, sequence);
}

void PipelineCore::End(absl::Duration now, Sequence& sequence) {
  if (sequence.state == SequenceState::kWaiting) {
    waiting_.Remove(&sequence);
  } else {
    waiting_.RecordEnd(now);
    by_slot_[sequence.slot] = nullptr;
    scheduler_.Remove(&sequence);
    if (!sequence.opened) {
      ReleaseSlot(sequence.slot, sequence.positions);
    }
  }
  sequences_.erase(sequence.id);
}

void PipelineCore::ReleaseSlot(uint32_t slot, int64_t positions) {
  ledger_.Release(positions);
  free_slots_.push_back(slot);
}

void PipelineCore::Advance(absl::Duration now) {
  const bool running = num_requests() > num_waiting();
  meter_.Advance(now, scheduler_.in_flight(), running);
}

double PipelineCore::PipelineFill() const {
  return meter_.MeanInFlight() /
         static_cast<double>(scheduler_.num_microbatches());
}

void PipelineCore::FillSnapshot(EngineSnapshot& snapshot) const {
  snapshot.ready = connected_ && accepting_;
  snapshot.not_ready_reason =
      accepting_ ? not_ready_reason_ : "the server is shutting down";
  snapshot.epoch = epoch_;
  snapshot.context = config_.context;
  snapshot.vocab_size = config_.vocab_size;
  snapshot.requests_running = num_requests() - num_waiting();
  snapshot.requests_waiting = num_waiting();
  snapshot.requests_finished = counters_.finished;
  snapshot.requests_failed = counters_.failed;
  snapshot.requests_cancelled = counters_.cancelled;
  snapshot.requests_refused = counters_.refused;
  snapshot.prompt_tokens = counters_.prompt_tokens;
  snapshot.generated_tokens = counters_.generated_tokens;
  snapshot.microbatches_in_flight = scheduler_.in_flight();
  snapshot.microbatch_slots = scheduler_.num_microbatches();
  snapshot.pipeline_fill = PipelineFill();
  snapshot.cycle_p50 = meter_.CycleP50();
  for (int64_t stage = 0; stage < ledger_.num_stages(); ++stage) {
    StageSnapshot one;
    one.name = config_.stages[static_cast<size_t>(stage)].name;
    one.alive = connected_;
    one.kv_blocks_used = ledger_.BlocksUsed(stage);
    one.kv_blocks_total = ledger_.BlocksTotal(stage);
    snapshot.stages.push_back(std::move(one));
  }
}

}  // namespace millrace::coordinator
