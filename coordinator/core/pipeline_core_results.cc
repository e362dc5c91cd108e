// What PipelineCore does with a frame from the last stage. The frame passed
// its decoder, but says nothing here that is trusted: results for nobody are
// ignored, missing ones end their request.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "coordinator/core/pipeline_core.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;
using transport::Result;
using transport::RowFailure;

absl::Status NumbersFailed(RowFailure failure, int64_t position) {
  switch (failure) {
    case RowFailure::kKvOverflow:
      return MakeError(absl::StatusCode::kOutOfRange, "kv",
                       absl::StrCat("a key or value at position ", position,
                                    " is too large for the stored type"),
                       "start with --kv bf16, or with f32 where it is that");
    case RowFailure::kNone:
    case RowFailure::kLogitsNotFinite:
      break;
  }
  return MakeError(absl::StatusCode::kOutOfRange, "logits",
                   absl::StrCat("are not finite at position ", position),
                   "the weights or the numbers on the way are damaged");
}

absl::Status NoResult(absl::string_view of, int64_t position) {
  return MakeError(absl::StatusCode::kInternal, "last stage",
                   absl::StrCat("gave no ", of, " for position ", position));
}

}  // namespace

void PipelineCore::FrameReturned(absl::Duration now, const Frame& frame) {
  Advance(now);
  Scheduler::MicroBatch* microbatch = connected_ && frame.epoch == epoch_
                                          ? scheduler_.Find(frame.microbatch)
                                          : nullptr;
  if (microbatch == nullptr) {
    ++counters_.frames_ignored;
    return;
  }
  meter_.RecordCycle(now - microbatch->sent_at);
  for (const Result& result : frame.results) {
    HandleResult(now, result);
  }
  for (const Scheduler::Part& part : microbatch->parts) {
    CheckPart(now, part);
  }
  for (const Scheduler::Closing& closing : microbatch->closing) {
    ReleaseSlot(closing.slot, closing.positions);
  }
  scheduler_.Returned(*microbatch);
  Admit();
}

Sequence* PipelineCore::BySlot(uint32_t slot) {
  return slot < by_slot_.size() ? by_slot_[slot] : nullptr;
}

void PipelineCore::HandleResult(absl::Duration now, const Result& result) {
  Sequence* sequence = BySlot(result.slot);
  const int64_t position = result.position;
  if (sequence == nullptr || position >= sequence->next_row) {
    ++counters_.results_ignored;
    return;
  }
  if (result.failure != RowFailure::kNone) {
    Fail(now, *sequence, NumbersFailed(result.failure, position));
    return;
  }
  if (position < sequence->num_prompt && sequence->request.want_prompt_scores) {
    HandleScore(*sequence, result);
  }
  if (position >= sequence->num_prompt - 1 && sequence->wants_token()) {
    HandleToken(now, *sequence, result);
  }
}

void PipelineCore::HandleScore(Sequence& sequence, const Result& result) {
  const int64_t position = result.position;
  if (position != sequence.next_score) {
    ++counters_.results_ignored;
    return;
  }
  ++sequence.next_score;
  const bool last = position == sequence.num_prompt - 1;
  if (last && !sequence.request.want_logits_crc) {
    return;
  }
  ScoreEvent event{.position = position + 1,
                   .logprob = last ? 0 : result.logprob,
                   .top = {},
                   .logits_crc = result.logits_crc};
  if (!last) {
    event.top = result.top;
  }
  notices_.push_back(Notice{.id = sequence.id, .what = std::move(event)});
}

void PipelineCore::HandleToken(absl::Duration now, Sequence& sequence,
                               const Result& result) {
  if (static_cast<int64_t>(result.position) != sequence.num_tokens() - 1) {
    ++counters_.results_ignored;
    return;
  }
  if (result.token < 0 || result.token >= config_.vocab_size) {
    Fail(now, sequence, NoResult("token of the vocabulary", result.position));
    return;
  }
  notices_.push_back(
      Notice{.id = sequence.id,
             .what = TokenEvent{.token = result.token,
                                .position = sequence.num_tokens(),
                                .logprob = result.logprob,
                                .top = result.top,
                                .logits_crc = result.logits_crc}});
  sequence.tokens.push_back(result.token);
  ++counters_.generated_tokens;
  const std::vector<int32_t>& stops = sequence.request.stop_tokens;
  if (std::find(stops.begin(), stops.end(), result.token) != stops.end()) {
    Finish(now, sequence, FinishReason::kStop);
    return;
  }
  if (sequence.num_tokens() == sequence.positions) {
    Finish(now, sequence, FinishReason::kLength);
    return;
  }
  sequence.ready = true;
}

// Every row that wanted something must have been answered by the time its
// frame is back; a request must not hang on a stage that forgets.
void PipelineCore::CheckPart(absl::Duration now, const Scheduler::Part& part) {
  counters_.prompt_tokens += part.prompt_rows;
  Sequence* sequence = BySlot(part.slot);
  if (sequence == nullptr || sequence->id != part.id) {
    return;
  }
  const int64_t prompt_last = sequence->num_prompt - 1;
  const GenerateRequest& request = sequence->request;
  if (request.want_prompt_scores && part.last_position <= prompt_last) {
    const bool last_counts = request.want_logits_crc;
    const int64_t wanted = std::min(
        part.last_position, last_counts ? prompt_last : prompt_last - 1);
    if (sequence->next_score <= wanted) {
      Fail(now, *sequence, NoResult("score", sequence->next_score));
      return;
    }
  }
  if (part.last_position < prompt_last) {
    return;
  }
  if (!sequence->wants_token()) {
    Finish(now, *sequence, FinishReason::kLength);
    return;
  }
  if (part.last_position == sequence->num_tokens() - 1) {
    Fail(now, *sequence, NoResult("token", part.last_position));
  }
}

}  // namespace millrace::coordinator
