// What must hold after every event of PipelineSimulation, and at its end.

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/simulation/pipeline_simulation.h"

namespace millrace::coordinator {
namespace {

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

bool SameTop(const transport::TopTokens& a, const transport::TopTokens& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].token != b[i].token || a[i].logprob != b[i].logprob) {
      return false;
    }
  }
  return true;
}

bool Same(const TokenEvent& a, const TokenEvent& b) {
  return a.token == b.token && a.position == b.position &&
         a.logprob == b.logprob && a.logits_crc == b.logits_crc &&
         SameTop(a.top, b.top);
}

bool Same(const ScoreEvent& a, const ScoreEvent& b) {
  return a.position == b.position && a.logprob == b.logprob &&
         a.logits_crc == b.logits_crc && SameTop(a.top, b.top);
}

}  // namespace

absl::Status PipelineSimulation::Listen() {
  notices_.clear();
  core_.TakeNotices(notices_);
  for (const Notice& notice : notices_) {
    const auto found = by_id_.find(notice.id);
    if (found == by_id_.end()) {
      return Broken("a notice for a request that was not accepted");
    }
    Planned& planned = planned_[found->second];
    if (planned.ended) {
      return Broken("request ", notice.id, " is told more after its end");
    }
    MILLRACE_RETURN_IF_ERROR(Hear(planned, notice));
  }
  return absl::OkStatus();
}

absl::Status PipelineSimulation::Hear(Planned& planned, const Notice& notice) {
  const FakeAnswer& oracle = planned.oracle;
  if (std::holds_alternative<Started>(notice.what)) {
    // First come, first admitted.
    if (planned.started || notice.id <= last_started_) {
      return Broken("request ", notice.id, " starts out of turn");
    }
    planned.started = true;
    last_started_ = notice.id;
    return absl::OkStatus();
  }
  if (const auto* token = std::get_if<TokenEvent>(&notice.what)) {
    if (planned.tokens >= oracle.tokens.size() ||
        !Same(*token, oracle.tokens[planned.tokens++])) {
      return Broken("request ", notice.id, " got a wrong token at ",
                    token->position);
    }
    return absl::OkStatus();
  }
  if (const auto* score = std::get_if<ScoreEvent>(&notice.what)) {
    if (oracle.fails) {
      return absl::OkStatus();  // scores before the failing position
    }
    if (planned.scores >= oracle.scores.size() ||
        !Same(*score, oracle.scores[planned.scores++])) {
      return Broken("request ", notice.id, " got a wrong score at ",
                    score->position);
    }
    return absl::OkStatus();
  }
  planned.ended = true;
  if (const auto* error = std::get_if<absl::Status>(&notice.what)) {
    return HearEnd(planned, *error);
  }
  ++totals_.finished;
  if (oracle.fails || std::get<FinishReason>(notice.what) != oracle.reason ||
      planned.tokens != oracle.tokens.size() ||
      planned.scores != oracle.scores.size()) {
    return Broken("request ", notice.id, " finished too early or wrongly");
  }
  return absl::OkStatus();
}

absl::Status PipelineSimulation::HearEnd(Planned& planned,
                                         const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kCancelled:
      ++totals_.cancelled;
      return planned.cancelled ? absl::OkStatus()
                               : Broken("cancelled by nobody");
    case absl::StatusCode::kUnavailable:
      ++totals_.lost;
      return totals_.losses > 0 && planned.started
                 ? absl::OkStatus()
                 : Broken("unavailable without a loss");
    case absl::StatusCode::kResourceExhausted:
      ++totals_.expired;
      return planned.started ? Broken("a running request ran out of time")
                             : absl::OkStatus();
    case absl::StatusCode::kOutOfRange:
      ++totals_.out_of_range;
      return planned.oracle.fails ? absl::OkStatus()
                                  : Broken("numbers out of range of nobody");
    default:
      return Broken("ended with ", error.ToString());
  }
}

absl::Status PipelineSimulation::CheckStep() const {
  const KvLedger& ledger = core_.ledger();
  for (int64_t stage = 0; stage < ledger.num_stages(); ++stage) {
    if (ledger.BlocksUsed(stage) > ledger.BlocksTotal(stage) ||
        ledger.BlocksUsed(stage) < 0 ||
        ledger.sequences() > config_.stages[static_cast<size_t>(stage)].slots) {
      return Broken("the ledger exceeds stage ", stage);
    }
  }
  const int64_t in_flight = core_.scheduler().in_flight();
  if (in_flight > config_.microbatches) {
    return Broken(in_flight, " frames under way");
  }
  int64_t frames = static_cast<int64_t>(returning_.size());
  for (const Server& server : servers_) {
    frames += static_cast<int64_t>(server.queue.size());
  }
  if (frames != in_flight) {
    return Broken(frames, " frames exist, ", in_flight, " are counted");
  }
  if (!core_.connected()) {
    return absl::OkStatus();
  }
  // Progress: whoever is accepted, or still held, waits for a frame.
  if (in_flight == 0 && (core_.num_requests() > 0 || ledger.sequences() > 0)) {
    return Broken(core_.num_requests(), " requests wait for nothing");
  }
  return absl::OkStatus();
}

absl::Status PipelineSimulation::CheckEnd() const {
  for (const Planned& planned : planned_) {
    if (planned.id && !planned.ended) {
      return Broken("request ", *planned.id, " never ended");
    }
  }
  if (core_.num_requests() != 0 || core_.ledger().sequences() != 0 ||
      !core_.scheduler().idle()) {
    return Broken("the core is not at rest");
  }
  for (int64_t stage = 0; stage < core_.ledger().num_stages(); ++stage) {
    if (core_.ledger().BlocksUsed(stage) != 0) {
      return Broken("blocks stay reserved on stage ", stage);
    }
    if (servers_[static_cast<size_t>(stage)].stage.num_open() != 0) {
      return Broken("sequences stay open on stage ", stage);
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace::coordinator
