#include "coordinator/simulation/load_simulation.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "base/error.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;

// Between two questions whether to go on: a few milliseconds.
constexpr int64_t kStepsPerQuestion = 1 << 10;

// A queue that holds all clients of a closed load: they wait for the answer,
// not for a place in the queue.
CoreConfig ConfigOf(const SimulatedPipeline& pipeline,
                    const Workload& workload) {
  CoreConfig config = pipeline.CoreConfigOf().WithDefaults();
  const int64_t clients = workload.arrivals.concurrency;
  const int64_t tokens = workload.input.Most() + workload.output.Most();
  config.queue.requests_max = std::max(config.queue.requests_max, clients);
  config.queue.tokens_max = std::max(config.queue.tokens_max, clients * tokens);
  return config;
}

}  // namespace

LoadSimulation::LoadSimulation(const SimulatedPipeline& pipeline,
                               const LoadOptions& options)
    : pipeline_(pipeline),
      options_(options),
      config_(ConfigOf(pipeline, options.workload)),
      core_(config_),
      stages_(pipeline, config_.microbatches, options.faults.empty()),
      source_(options.workload),
      frames_(static_cast<size_t>(config_.microbatches)),
      health_(pipeline.nodes.size()) {
  for (int64_t ticket = config_.microbatches; ticket-- > 0;) {
    free_tickets_.push_back(ticket);
  }
  // Grows beyond that; most runs are shorter.
  constexpr int64_t kReserved = 1 << 20;
  records_.reserve(
      static_cast<size_t>(std::min(kReserved, source_.num_left())));
}

absl::StatusOr<LoadReport> LoadSimulation::Run() {
  Begin();
  const int64_t all = source_.num_left() + report_.requests + (next_ ? 1 : 0);
  int64_t steps = 0;
  while (Step()) {
    if (++steps % kStepsPerQuestion == 0 && options_.go_on != nullptr &&
        !options_.go_on({.ended = report_.completed + report_.failed(),
                         .requests = all,
                         .now = now_})) {
      return absl::CancelledError("the simulation was interrupted");
    }
  }
  return Report();
}

void LoadSimulation::Begin() {
  core_.Connect(now_, ++epoch_);
  const int64_t clients = options_.workload.arrivals.concurrency;
  if (clients == 0) {
    next_ = source_.Next();
    return;
  }
  for (int64_t i = 0; i < clients; ++i) {
    SubmitDue();
  }
  Settle();
}

// Plays what comes next; false after the end of the last request. Of things at
// one time faults come first, then requests, then frames, then time limits.
bool LoadSimulation::Step() {
  if (!next_ && source_.num_left() == 0 && core_.num_requests() == 0) {
    return false;
  }
  constexpr absl::Duration kNever = absl::InfiniteDuration();
  const absl::Duration fault = next_fault_ < options_.faults.size()
                                   ? options_.faults[next_fault_].at
                                   : kNever;
  const absl::Duration request = next_ ? next_->at : kNever;
  const absl::Duration timer = timers_.empty() ? kNever : timers_.top().at;
  const absl::Duration frame = stages_.NextAt().value_or(kNever);
  const absl::Duration deadline = core_.NextDeadline().value_or(kNever);
  const absl::Duration first =
      std::min({fault, request, timer, frame, deadline});
  if (first == kNever) {
    return false;
  }
  // A deadline may be that of a request that has waited on while time stood.
  now_ = std::max(now_, first);
  if (first == fault) {
    Apply(options_.faults[next_fault_++]);
  } else if (first == request) {
    SubmitDue();
  } else if (first == timer) {
    FireTimer();
  } else if (first == frame) {
    const std::optional<int64_t> ticket = stages_.Step();
    if (!ticket.has_value()) {
      return true;  // the core has not heard of it
    }
    FrameBack(*ticket);
  } else {
    core_.TimePassed(now_);
  }
  Settle();
  return true;
}

void LoadSimulation::SetTimer(Timer timer) {
  timer.order = num_timers_++;
  timers_.push(timer);
}

void LoadSimulation::FireTimer() {
  const Timer timer = timers_.top();
  timers_.pop();
  if (timer.kind == TimerKind::kRetry) {
    SubmitDue();
  } else {
    LeaseEnds(timer.node, timer.stall);
  }
}

// Sends the next request, if there is one.
void LoadSimulation::SubmitDue() {
  std::optional<TraceEntry> entry = options_.workload.arrivals.concurrency > 0
                                        ? source_.Next()
                                        : std::exchange(next_, source_.Next());
  if (entry.has_value()) {
    Submit(*entry);
  }
}

void LoadSimulation::Submit(const TraceEntry& entry) {
  ++report_.requests;
  report_.arriving = now_;
  GenerateRequest request;
  // One token too many is refused as well as a billion.
  request.prompt.resize(static_cast<size_t>(
      std::min(entry.input_tokens, core_.ledger().longest() + 1)));
  request.tokens_max = entry.output_tokens;
  const absl::StatusOr<RequestId> id = core_.Submit(now_, std::move(request));
  if (!id.ok()) {
    Refused(id.status());
    return;
  }
  records_.push_back(
      Record{.sent = now_,
             .first = {},
             .last = {},
             .input_tokens = static_cast<int32_t>(entry.input_tokens)});
  report_.concurrent_max =
      std::max(report_.concurrent_max, core_.num_requests());
}

void LoadSimulation::Refused(const absl::Status& error) {
  ++report_.refused;
  if (report_.first_error.empty()) {
    report_.first_error = std::string(error.message());
  }
  report_.duration = now_;
  if (options_.workload.arrivals.concurrency > 0) {
    // A client comes again when it is told to.
    SetTimer(Timer{.at = now_ + absl::Seconds(RetryAfterOf(error)),
                   .kind = TimerKind::kRetry});
  }
}

// Hears what the core has to say and sends its frames, until both are dry.
void LoadSimulation::Settle() {
  for (;;) {
    SendFrames();
    core_.TakeNotices(notices_);
    if (notices_.empty()) {
      return;
    }
    for (const Notice& notice : notices_) {
      Record& record = records_[static_cast<size_t>(notice.id - 1)];
      if (std::holds_alternative<TokenEvent>(notice.what)) {
        HearToken(record);
      } else if (std::holds_alternative<FinishReason>(notice.what)) {
        HearFinish(record);
      } else if (const auto* error = std::get_if<absl::Status>(&notice.what)) {
        HearError(*error);
      }
    }
    notices_.clear();
  }
}

void LoadSimulation::SendFrames() {
  while (core_.PollFrame(now_, scratch_)) {
    report_.frames += scratch_.rows.empty() ? 0 : 1;
    const int64_t ticket = free_tickets_.back();
    free_tickets_.pop_back();
    Frame& frame = frames_[static_cast<size_t>(ticket)];
    frame.epoch = scratch_.epoch;
    frame.microbatch = scratch_.microbatch;
    // The only thing that the stages will say about them.
    frame.results.clear();
    for (const transport::Row& row : scratch_.rows) {
      if ((row.flags & transport::kRowWantsToken) != 0) {
        transport::Result& result = frame.results.emplace_back();
        result.slot = row.slot;
        result.position = row.position;
        result.token = 0;
      }
    }
    if (stages_.reads_sequences()) {
      ListLengths();
    }
    stages_.Enter(now_, ticket, static_cast<int64_t>(scratch_.rows.size()),
                  lengths_);
  }
}

// Positions that each sequence of the frame in scratch_ has behind its last
// row: rows of one sequence stand together, in order.
void LoadSimulation::ListLengths() {
  lengths_.clear();
  for (size_t i = 0; i < scratch_.rows.size(); ++i) {
    const transport::Row& row = scratch_.rows[i];
    if (i + 1 == scratch_.rows.size() ||
        scratch_.rows[i + 1].slot != row.slot) {
      lengths_.push_back(int64_t{row.position} + 1);
    }
  }
}

void LoadSimulation::FrameBack(int64_t ticket) {
  core_.FrameReturned(now_, frames_[static_cast<size_t>(ticket)]);
  free_tickets_.push_back(ticket);
}

void LoadSimulation::HearToken(Record& record) {
  if (record.output_tokens == 0) {
    record.first = now_;
  } else {
    report_.itl.Add(absl::ToDoubleSeconds(now_ - record.last));
  }
  ++record.output_tokens;
  record.last = now_;
  const int64_t second = absl::ToInt64Seconds(now_);
  second_tokens_ = second == second_ ? second_tokens_ + 1 : 1;
  second_ = second;
  report_.output_tokens_per_s_max =
      std::max(report_.output_tokens_per_s_max, second_tokens_);
}

void LoadSimulation::HearFinish(const Record& record) {
  const absl::Duration ttft = record.first - record.sent;
  const absl::Duration e2el = record.last - record.sent;
  const ServiceLimits& limits = options_.limits;
  bool good = (!limits.ttft || ttft <= *limits.ttft) &&
              (!limits.e2el || e2el <= *limits.e2el);
  ++report_.completed;
  report_.input_tokens += record.input_tokens;
  report_.output_tokens += record.output_tokens;
  report_.ttft.Add(absl::ToDoubleSeconds(ttft));
  report_.e2el.Add(absl::ToDoubleSeconds(e2el));
  if (record.output_tokens > 1) {
    const double tpot = absl::ToDoubleSeconds(e2el - ttft) /
                        static_cast<double>(record.output_tokens - 1);
    report_.tpot.Add(tpot);
    good = good && (!limits.tpot || absl::Seconds(tpot) <= *limits.tpot);
  }
  report_.good += good ? 1 : 0;
  Ended();
}

void LoadSimulation::HearError(const absl::Status& error) {
  absl::IsResourceExhausted(error) ? ++report_.expired : ++report_.lost;
  if (report_.first_error.empty()) {
    report_.first_error = std::string(error.message());
  }
  Ended();
}

void LoadSimulation::Ended() {
  report_.duration = now_;
  if (options_.workload.arrivals.concurrency > 0) {
    SubmitDue();
  }
}

LoadReport LoadSimulation::Report() {
  report_.microbatches = config_.microbatches;
  report_.microbatches_wanted = pipeline_.microbatches_wanted;
  report_.pipeline_fill = core_.PipelineFill();
  for (size_t i = 0; i < pipeline_.nodes.size(); ++i) {
    const double busy = absl::FDivDuration(
        stages_.Busy(report_.duration, static_cast<int64_t>(i)),
        std::max(report_.duration, absl::Nanoseconds(1)));
    report_.nodes.push_back(
        NodeLoad{.name = pipeline_.nodes[i].name, .busy_share = busy});
  }
  return std::move(report_);
}

}  // namespace millrace::coordinator
