#include "tests/simulation/pipeline_simulation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;

// Not std::uniform_int_distribution, which differs between libraries.
int64_t Draw(std::mt19937_64& random, int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

StagePool MakePool(std::mt19937_64& random, int64_t index) {
  StagePool pool;
  pool.name = absl::StrCat("w", index);
  // Some stages are rich, some poor, some have no full-attention layers.
  pool.full_blocks = Draw(random, 0, 3) == 0 ? 0 : Draw(random, 4, 40);
  const int64_t num_windows = Draw(random, 0, 2);
  for (int64_t i = 0; i < num_windows; ++i) {
    pool.windows.push_back(WindowPool{.ring_blocks = Draw(random, 1, 4),
                                      .pool_blocks = Draw(random, 3, 20)});
  }
  pool.slots = Draw(random, 1, 24);
  return pool;
}

}  // namespace

int64_t PipelineSimulation::Uniform(int64_t low, int64_t high) {
  return Draw(random_, low, high);
}

CoreConfig PipelineSimulation::MakeConfig(std::mt19937_64& random) {
  CoreConfig config;
  const int64_t num_stages = Draw(random, 1, 5);
  for (int64_t i = 0; i < num_stages; ++i) {
    config.stages.push_back(MakePool(random, i));
  }
  config.context = Draw(random, 60, 500);
  config.vocab_size = kFakeVocabSize;
  config.chunk =
      Draw(random, 1, 3) == 1 ? Draw(random, 1, 12) : Draw(random, 16, 200);
  config.rows_max = config.chunk + Draw(random, 1, 20);
  config.ops_max = Draw(random, 0, 1) == 0 ? 0 : Draw(random, 2, 6);
  config.microbatches = Draw(random, 0, 7);
  config.fixed_cost_rows = Draw(random, 1, 64);
  config.queue.requests_max = Draw(random, 1, 30);
  config.queue.tokens_max = Draw(random, 200, 8000);
  config.queue.age_max = absl::Milliseconds(Draw(random, 20, 2000));
  return config.WithDefaults();
}

PipelineSimulation::PipelineSimulation(uint64_t seed)
    : random_(seed), config_(MakeConfig(random_)), core_(config_) {
  servers_.reserve(config_.stages.size());
  for (size_t i = 0; i < config_.stages.size(); ++i) {
    servers_.push_back(Server{
        .stage = FakeStage(config_, static_cast<int64_t>(i)), .queue = {}});
  }
  core_.Connect(now_, ++epoch_);
  PlanRequests();
  PlanLosses();
}

GenerateRequest PipelineSimulation::MakeRequest() {
  GenerateRequest request;
  const int64_t prompt =
      Chance(20) ? Uniform(1, config_.context) : Uniform(1, 40);
  for (int64_t i = 0; i < prompt; ++i) {
    request.prompt.push_back(static_cast<int32_t>(Uniform(0, 899)));
  }
  if (Chance(5)) {
    request.prompt[static_cast<size_t>(Uniform(0, prompt - 1))] =
        static_cast<int32_t>(Uniform(kFakeOverflow, kFakePoison));
  }
  request.tokens_max = Chance(10) ? 0 : Uniform(1, 30);
  for (int64_t i = Uniform(0, 20); i > 0; --i) {
    request.stop_tokens.push_back(static_cast<int32_t>(Uniform(0, 899)));
  }
  request.sampling.seed = static_cast<uint64_t>(Uniform(0, 5));
  request.want_logprobs = Chance(20);
  request.top_logprobs = static_cast<int32_t>(Uniform(0, 3));
  request.want_prompt_scores = Chance(20);
  request.want_logits_crc = Chance(20);
  return request;
}

void PipelineSimulation::PlanRequests() {
  const int64_t num_requests = Uniform(1, 40);
  // From one burst to a trickle.
  const int64_t spread_ms = Uniform(0, 3) * Uniform(0, 300);
  for (int64_t i = 0; i < num_requests; ++i) {
    Planned planned;
    planned.request = MakeRequest();
    planned.oracle = FakeOracle(planned.request);
    planned_.push_back(std::move(planned));
    const absl::Duration at = now_ + absl::Milliseconds(Uniform(0, spread_ms));
    Schedule(at, EventKind::kSubmit, i);
    if (Chance(20)) {
      Schedule(at + absl::Microseconds(Uniform(0, 100000)), EventKind::kCancel,
               i);
    }
  }
  totals_.requests = num_requests;
}

void PipelineSimulation::PlanLosses() {
  absl::Duration at = now_;
  for (int64_t left = Chance(40) ? Uniform(1, 3) : 0; left > 0; --left) {
    at += absl::Microseconds(Uniform(0, 400000));
    Schedule(at, EventKind::kLose);
    at += absl::Microseconds(Uniform(0, 100000));
    Schedule(at, EventKind::kBack);
  }
}

void PipelineSimulation::Schedule(absl::Duration at, EventKind kind,
                                  int64_t index) {
  events_.push(Event{.at = at,
                     .order = order_++,
                     .kind = kind,
                     .index = index,
                     .epoch = epoch_});
}

absl::Status PipelineSimulation::Run() {
  SendFrames();
  for (;;) {
    const std::optional<absl::Duration> deadline = core_.NextDeadline();
    if (events_.empty() && !deadline) {
      return CheckEnd();
    }
    ++totals_.events;
    MILLRACE_RETURN_IF_ERROR(Step(deadline));
    SendFrames();
    MILLRACE_RETURN_IF_ERROR(Listen());
    MILLRACE_RETURN_IF_ERROR(CheckStep());
  }
}

// The next event, or the core's deadline if that is earlier.
absl::Status PipelineSimulation::Step(std::optional<absl::Duration> deadline) {
  if (deadline && (events_.empty() || events_.top().at >= *deadline)) {
    now_ = std::max(now_, *deadline);
    core_.TimePassed(now_);
    return absl::OkStatus();
  }
  const Event event = events_.top();
  events_.pop();
  now_ = event.at;
  return Handle(event);
}

absl::Status PipelineSimulation::Handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kSubmit:
      Submit(event.index);
      return absl::OkStatus();
    case EventKind::kCancel: {
      Planned& planned = planned_[static_cast<size_t>(event.index)];
      if (planned.id && !planned.ended) {
        planned.cancelled = true;
        core_.Cancel(now_, *planned.id);
      }
      return absl::OkStatus();
    }
    case EventKind::kStageDone:
      return event.epoch == epoch_ ? StageDone(event.index) : absl::OkStatus();
    case EventKind::kReturn:
      if (event.epoch == epoch_) {
        ReturnFrame();
      } else if (!ghosts_.empty()) {
        core_.FrameReturned(now_, ghosts_.back());
        ghosts_.pop_back();
      }
      return absl::OkStatus();
    case EventKind::kLose:
      Lose();
      return absl::OkStatus();
    case EventKind::kBack:
      core_.Connect(now_, epoch_);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

void PipelineSimulation::Submit(int64_t index) {
  Planned& planned = planned_[static_cast<size_t>(index)];
  const absl::StatusOr<RequestId> id = core_.Submit(now_, planned.request);
  if (id.ok()) {
    planned.id = *id;
    by_id_[*id] = static_cast<size_t>(index);
  } else {
    ++totals_.refused;
  }
}

absl::Duration PipelineSimulation::ServiceTime(const Frame& frame) {
  return absl::Microseconds(Uniform(100, 1000)) +
         absl::Microseconds(10) * static_cast<int64_t>(frame.rows.size());
}

void PipelineSimulation::Arrive(int64_t stage, Frame frame) {
  if (stage == static_cast<int64_t>(servers_.size())) {
    returning_.push_back(std::move(frame));
    Schedule(now_ + absl::Microseconds(50), EventKind::kReturn);
    return;
  }
  Server& server = servers_[static_cast<size_t>(stage)];
  server.queue.push_back(std::move(frame));
  if (server.queue.size() == 1) {
    Schedule(now_ + ServiceTime(server.queue.front()), EventKind::kStageDone,
             stage);
  }
}

absl::Status PipelineSimulation::StageDone(int64_t stage) {
  Server& server = servers_[static_cast<size_t>(stage)];
  Frame frame = std::move(server.queue.front());
  server.queue.pop_front();
  MILLRACE_RETURN_IF_ERROR(server.stage.Process(frame));
  if (!server.queue.empty()) {
    Schedule(now_ + ServiceTime(server.queue.front()), EventKind::kStageDone,
             stage);
  }
  Arrive(stage + 1, std::move(frame));
  return absl::OkStatus();
}

void PipelineSimulation::ReturnFrame() {
  const Frame frame = std::move(returning_.front());
  returning_.pop_front();
  core_.FrameReturned(now_, frame);
  if (Chance(2)) {
    core_.FrameReturned(now_, frame);  // a repetition changes nothing
  }
}

void PipelineSimulation::Lose() {
  ++totals_.losses;
  core_.Disconnect(now_, absl::UnavailableError(absl::StrCat(
                             "stage 'w", Uniform(0, 4), "' was lost")));
  ++epoch_;
  for (Frame& frame : returning_) {
    ghosts_.push_back(std::move(frame));
  }
  returning_.clear();
  for (Server& server : servers_) {
    server.queue.clear();
    server.stage.Reset();
  }
}

void PipelineSimulation::SendFrames() {
  Frame frame;
  while (core_.PollFrame(now_, frame)) {
    Arrive(0, frame);
  }
}

}  // namespace millrace::coordinator
