#include "coordinator/core/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace millrace::coordinator {
namespace {

using transport::Frame;
using transport::Row;

// Rows a prompt gets before it is the next one's turn: one KV block. Less
// would only cut matrix products into thinner slices per sequence.
constexpr int64_t kTurnRows = kKvBlockPositions;
// No piece of a chunk is smaller than this unless the work is: below it the
// weights are read for too few rows.
constexpr int64_t kPieceRowsMin = 16;
// A frame's rows that stay free for prompts when decoding alone would fill it.
constexpr int64_t kPrefillShare = 8;  // one in so many

int64_t NumMembers(const Scheduler::MicroBatch& microbatch) {
  return static_cast<int64_t>(microbatch.members.size());
}

uint8_t DecodeFlags(const GenerateRequest& request) {
  uint32_t flags = transport::kRowWantsToken;
  if (request.want_logprobs) {
    flags |= transport::kRowWantsLogprob;
  }
  if (request.want_logits_crc) {
    flags |= transport::kRowWantsCrc;
  }
  return static_cast<uint8_t>(flags);
}

Row PromptRow(const Sequence& sequence, int64_t position) {
  const GenerateRequest& request = sequence.request;
  Row row{.slot = sequence.slot,
          .position = static_cast<uint32_t>(position),
          .token = sequence.tokens[static_cast<size_t>(position)],
          .target = 0,
          .flags = 0};
  const bool last = position == sequence.num_prompt - 1;
  uint32_t flags = 0;
  if (last && sequence.wants_token()) {
    flags |= DecodeFlags(request);
  }
  if (request.want_prompt_scores) {
    if (!last) {
      flags |= transport::kRowWantsScore;
      row.target = sequence.tokens[static_cast<size_t>(position + 1)];
    }
    if (request.want_logits_crc) {
      flags |= transport::kRowWantsCrc;
    }
  }
  row.flags = static_cast<uint8_t>(flags);
  return row;
}

transport::OpenSequence OpenOf(const Sequence& sequence) {
  const GenerateRequest& request = sequence.request;
  return transport::OpenSequence{
      .slot = sequence.slot,
      .prompt_tokens = static_cast<uint32_t>(sequence.num_prompt),
      .tokens_max = static_cast<uint32_t>(sequence.positions),
      .top_logprobs = static_cast<uint8_t>(request.top_logprobs),
      .sampling = request.sampling};
}

}  // namespace

Scheduler::Scheduler(const CoreConfig& config)
    : num_stages_(static_cast<int64_t>(config.stages.size())),
      chunk_(config.chunk),
      rows_max_(config.rows_max),
      ops_max_(config.ops_max),
      fixed_cost_rows_(config.fixed_cost_rows),
      microbatches_(static_cast<size_t>(config.microbatches)) {
  // Decoding is to allocate nothing, wherever its sequences move.
  const auto slots = static_cast<size_t>(config.Slots());
  for (MicroBatch& microbatch : microbatches_) {
    microbatch.members.reserve(slots);
    microbatch.parts.reserve(slots);
  }
}

void Scheduler::AddPrefill(Sequence* sequence) { prefill_.push_back(sequence); }

void Scheduler::Remove(Sequence* sequence) {
  std::erase(prefill_, sequence);
  for (MicroBatch& microbatch : microbatches_) {
    std::erase(microbatch.members, sequence);
  }
  if (sequence->opened) {
    closing_.push_back(
        Closing{.slot = sequence->slot, .positions = sequence->positions});
  }
}

bool Scheduler::Compose(absl::Duration now, Frame& frame) {
  frame.ops.clear();
  frame.rows.clear();
  frame.tensors.clear();
  frame.results.clear();
  Rebalance();
  idle_order_.clear();
  for (MicroBatch& microbatch : microbatches_) {
    if (!microbatch.in_flight) {
      idle_order_.push_back(&microbatch);
    }
  }
  // By address where equal: the order of microbatches_. A stable sort would
  // allocate.
  std::sort(idle_order_.begin(), idle_order_.end(),
            [](const MicroBatch* a, const MicroBatch* b) {
              return a->members.size() != b->members.size()
                         ? a->members.size() < b->members.size()
                         : a < b;
            });
  for (MicroBatch* microbatch : idle_order_) {
    const bool has_rows = ComposeRows(*microbatch, frame);
    if (!has_rows && (closing_.empty() || microbatch != idle_order_.back())) {
      continue;
    }
    AddCloses(*microbatch, frame);
    microbatch->in_flight = true;
    microbatch->id = next_id_++;
    microbatch->sent_at = now;
    ++in_flight_;
    frame.microbatch = microbatch->id;
    return true;
  }
  return false;
}

// Moves ready sequences from micro-batches that wait here to less loaded ones.
void Scheduler::Rebalance() {
  for (MicroBatch& from : microbatches_) {
    if (from.in_flight) {
      continue;
    }
    // Backwards, so that erasing does not disturb those yet to be seen.
    for (size_t i = from.members.size(); i-- > 0;) {
      MicroBatch* to = LeastLoaded();
      if (NumMembers(from) < NumMembers(*to) + 2) {
        break;
      }
      Sequence* sequence = from.members[i];
      if (!sequence->ready) {
        continue;
      }
      from.members.erase(from.members.begin() + static_cast<int64_t>(i));
      to->members.push_back(sequence);
    }
  }
}

// With the fewest members; of equals one that can leave at once.
Scheduler::MicroBatch* Scheduler::LeastLoaded() {
  MicroBatch* least = &microbatches_.front();
  for (MicroBatch& microbatch : microbatches_) {
    const int64_t difference = NumMembers(microbatch) - NumMembers(*least);
    if (difference < 0 ||
        (difference == 0 && least->in_flight && !microbatch.in_flight)) {
      least = &microbatch;
    }
  }
  return least;
}

bool Scheduler::ComposeRows(MicroBatch& microbatch, Frame& frame) {
  int64_t decode_max = rows_max_;
  if (!prefill_.empty()) {
    decode_max -=
        std::min(chunk_, std::max<int64_t>(1, rows_max_ / kPrefillShare));
  }
  AddDecodeRows(microbatch, decode_max, frame);
  AddPrefillRows(microbatch,
                 rows_max_ - static_cast<int64_t>(frame.rows.size()), frame);
  return !frame.rows.empty();
}

void Scheduler::AddDecodeRows(MicroBatch& microbatch, int64_t rows_max,
                              Frame& frame) {
  size_t passed = 0;
  for (; passed < microbatch.members.size(); ++passed) {
    if (static_cast<int64_t>(frame.rows.size()) >= rows_max) {
      break;
    }
    Sequence& sequence = *microbatch.members[passed];
    if (!sequence.ready) {
      continue;
    }
    sequence.ready = false;
    const int64_t position = sequence.next_row++;
    frame.rows.push_back(
        Row{.slot = sequence.slot,
            .position = static_cast<uint32_t>(position),
            .token = sequence.tokens[static_cast<size_t>(position)],
            .target = 0,
            .flags = static_cast<uint8_t>(DecodeFlags(sequence.request) |
                                          transport::kRowDecode)});
    microbatch.parts.push_back(Part{.id = sequence.id,
                                    .slot = sequence.slot,
                                    .last_position = position,
                                    .prompt_rows = 0});
  }
  // Those that found no room are first in the next pass.
  std::rotate(microbatch.members.begin(),
              microbatch.members.begin() + static_cast<int64_t>(passed),
              microbatch.members.end());
}

int64_t Scheduler::PieceRows() const {
  if (num_stages_ == 1) {
    return chunk_;
  }
  // A prompt of n rows in pieces of c through S stages takes about
  // (S + n/c - 1) (a + b c), least at c = sqrt(n (a/b) / (S - 1)), where a/b
  // is fixed_cost_rows_.
  int64_t rows = 0;
  for (const Sequence* sequence : prefill_) {
    rows += sequence->num_prompt;
  }
  const double best = std::sqrt(static_cast<double>(rows) *
                                static_cast<double>(fixed_cost_rows_) /
                                static_cast<double>(num_stages_ - 1));
  return std::clamp(static_cast<int64_t>(std::ceil(best)),
                    std::min(kPieceRowsMin, chunk_), chunk_);
}

int64_t Scheduler::EndsMax(const MicroBatch& microbatch) const {
  int64_t sequences = static_cast<int64_t>(prefill_.size());
  int64_t idle = 0;
  for (const MicroBatch& each : microbatches_) {
    sequences += NumMembers(each);
    idle += each.in_flight ? 0 : 1;
  }
  if (idle <= 1) {
    return sequences;  // nobody else could take them now
  }
  const int64_t fair =
      (sequences + num_microbatches() - 1) / num_microbatches();
  return std::max<int64_t>(1, fair - NumMembers(microbatch));
}

void Scheduler::AddPrefillRows(MicroBatch& microbatch, int64_t rows_max,
                               Frame& frame) {
  if (prefill_.empty() || rows_max <= 0) {
    return;
  }
  // Half of the operations at most are opens, so that closes are not held up.
  SharePrefill(std::min(PieceRows(), rows_max), ops_max_ / 2,
               EndsMax(microbatch));
  prefill_next_.clear();
  for (size_t i = 0; i < prefill_.size(); ++i) {
    if (shares_[i] == 0) {
      prefill_next_.push_back(prefill_[i]);
    }
  }
  for (size_t i = 0; i < prefill_.size(); ++i) {
    if (shares_[i] == 0) {
      continue;
    }
    Sequence& sequence = *prefill_[i];
    AddPromptRows(sequence, shares_[i], microbatch, frame);
    if (sequence.prompt_left() > 0) {
      prefill_next_.push_back(&sequence);
      continue;
    }
    sequence.state = SequenceState::kDecode;
    if (sequence.wants_token()) {
      microbatch.members.push_back(&sequence);
    }
  }
  std::swap(prefill_, prefill_next_);
}

// Fills shares_: `rows` go round in turns of kTurnRows; at most `opens`
// sequences begin and `ends` prompts end.
void Scheduler::SharePrefill(int64_t rows, int64_t opens, int64_t ends) {
  shares_.assign(prefill_.size(), 0);
  bool progress = true;
  while (rows > 0 && progress) {
    progress = false;
    for (size_t i = 0; i < prefill_.size() && rows > 0; ++i) {
      const Sequence& sequence = *prefill_[i];
      const int64_t left = sequence.prompt_left() - shares_[i];
      const int64_t turn = std::min({kTurnRows, left, rows});
      const bool begins = !sequence.opened && shares_[i] == 0;
      const bool finishes = turn == left;
      if (turn == 0 || (begins && opens == 0) || (finishes && ends == 0)) {
        continue;
      }
      opens -= begins ? 1 : 0;
      ends -= finishes ? 1 : 0;
      shares_[i] += turn;
      rows -= turn;
      progress = true;
    }
  }
}

void Scheduler::AddPromptRows(Sequence& sequence, int64_t count,
                              MicroBatch& microbatch, Frame& frame) {
  if (!sequence.opened) {
    sequence.opened = true;
    frame.ops.emplace_back(OpenOf(sequence));
  }
  for (int64_t i = 0; i < count; ++i) {
    frame.rows.push_back(PromptRow(sequence, sequence.next_row));
    ++sequence.next_row;
  }
  microbatch.parts.push_back(Part{.id = sequence.id,
                                  .slot = sequence.slot,
                                  .last_position = sequence.next_row - 1,
                                  .prompt_rows = count});
}

void Scheduler::AddCloses(MicroBatch& microbatch, Frame& frame) {
  const int64_t room =
      std::min(static_cast<int64_t>(closing_.size()),
               ops_max_ - static_cast<int64_t>(frame.ops.size()));
  const auto end = closing_.begin() + room;
  for (auto closing = closing_.begin(); closing != end; ++closing) {
    frame.ops.emplace_back(transport::CloseSequence{.slot = closing->slot});
    microbatch.closing.push_back(*closing);
  }
  closing_.erase(closing_.begin(), end);
}

Scheduler::MicroBatch* Scheduler::Find(uint64_t microbatch) {
  for (MicroBatch& each : microbatches_) {
    if (each.in_flight && each.id == microbatch) {
      return &each;
    }
  }
  return nullptr;
}

void Scheduler::Returned(MicroBatch& microbatch) {
  MILLRACE_CHECK(microbatch.in_flight);
  microbatch.in_flight = false;
  microbatch.parts.clear();
  microbatch.closing.clear();
  --in_flight_;
}

void Scheduler::Reset() {
  for (MicroBatch& microbatch : microbatches_) {
    microbatch.in_flight = false;
    microbatch.members.clear();
    microbatch.parts.clear();
    microbatch.closing.clear();
  }
  prefill_.clear();
  closing_.clear();
  in_flight_ = 0;
}

bool Scheduler::idle() const {
  if (in_flight_ > 0 || !prefill_.empty() || !closing_.empty()) {
    return false;
  }
  return std::all_of(
      microbatches_.begin(), microbatches_.end(),
      [](const MicroBatch& each) { return each.members.empty(); });
}

}  // namespace millrace::coordinator
