#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/kernel_use.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// The token-level face of a pipeline: the HTTP API, `run`, `chat` and `eval`
// all drive this. Text, stop strings and templates live above it.

using RequestId = uint64_t;

// One sequence to run.
struct GenerateRequest {
  std::vector<int32_t> prompt;  // 1 .. context ids, each < vocab_size
  transport::SamplingOptions sampling;
  int64_t tokens_max = 16;  // generated; 0: only the prompt is read (scores)
  std::vector<int32_t> stop_tokens;  // end the sequence, included in tokens
  bool want_logprobs = false;        // of generated tokens
  int32_t top_logprobs = 0;
  // Log-probabilities of prompt tokens 1 .. n-1 (position 0 has none).
  bool want_prompt_scores = false;
  bool want_logits_crc = false;  // of every row from which a token was chosen,
                                 // of every row with want_prompt_scores
};

enum class FinishReason { kStop, kLength };

struct TokenEvent {
  int32_t token = 0;
  int64_t position = 0;  // of the token in the sequence
  float logprob = 0;     // valid when asked for
  transport::TopTokens top;
  uint32_t logits_crc = 0;  // of the row it was chosen from, when asked for
};

// A prompt row's score: log-probability of prompt[position] given what is
// before it. The last prompt row has no target; with want_logits_crc it comes
// with position == prompt size and logprob 0.
struct ScoreEvent {
  int64_t position = 0;
  float logprob = 0;
  transport::TopTokens top;
  uint32_t logits_crc = 0;
};

// Receives what happens to one request, on the engine's thread, in order; must
// return soon and not call back into the engine but for Cancel. Exactly one of
// OnFinish and OnError comes, last.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  // Admitted; its prompt is being read.
  virtual void OnStart() {}
  virtual void OnPromptScore(const ScoreEvent& event) { (void)event; }
  virtual void OnToken(const TokenEvent& event) = 0;
  virtual void OnFinish(FinishReason reason) = 0;
  // kUnavailable: a stage was lost; kCancelled; kInternal; kOutOfRange: numbers
  // went out of range at a position (the message names it and the remedy);
  // kResourceExhausted: waited in the queue too long (see RetryAfterOf).
  virtual void OnError(const absl::Status& error) = 0;
};

struct StageSnapshot {
  std::string name;
  int64_t first_layer = 0;
  int64_t last_layer = 0;
  bool alive = true;
  absl::Duration busy;
  absl::Duration wait_for_input;
  absl::Duration wait_for_credit;
  int64_t frames = 0;
  int64_t rows = 0;
  int64_t kv_blocks_used = 0;
  int64_t kv_blocks_total = 0;
  int64_t resident_bytes = 0;
  std::vector<control::KernelUse> kernels;  // that it runs
};

// What /metrics, /ready and the end-of-demo summary show. Cheap; any thread.
struct EngineSnapshot {
  bool ready = false;
  std::string not_ready_reason;  // empty when ready
  uint64_t epoch = 0;
  int64_t context = 0;  // longest prompt + answer
  int64_t vocab_size = 0;
  int64_t requests_running = 0;
  int64_t requests_waiting = 0;
  int64_t requests_finished = 0;
  int64_t requests_failed = 0;
  int64_t requests_cancelled = 0;
  int64_t requests_refused = 0;
  int64_t prompt_tokens = 0;  // read
  int64_t generated_tokens = 0;
  int64_t microbatches_in_flight = 0;
  int64_t microbatch_slots = 0;  // N that fills the pipeline
  // Time-weighted mean of micro-batches in flight over N while any request was
  // running.
  double pipeline_fill = 0;
  absl::Duration cycle_p50;  // round trip of a micro-batch
  std::vector<StageSnapshot> stages;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues a request. Immediate refusals: kInvalidArgument (can never fit; the
  // message gives the longest length that would), kResourceExhausted (queue
  // full; `retry_after` payload in seconds, see RetryAfterOf), kUnavailable
  // (not ready). The observer is shared because it must outlive both the caller
  // and the engine's use of it. Any thread.
  virtual absl::StatusOr<RequestId> Submit(
      GenerateRequest request, std::shared_ptr<RequestObserver> observer) = 0;

  // Ends a request; the observer gets OnError(kCancelled) unless it had ended.
  // Memory comes back on every stage within one pass. Any thread, also from an
  // observer's callback. Unknown ids are ignored.
  virtual void Cancel(RequestId id) = 0;

  [[nodiscard]] virtual EngineSnapshot Snapshot() const = 0;

  // Refuses new requests, lets running ones finish until `deadline`, then
  // cancels them. Blocks. Any thread but the engine's.
  virtual void Drain(absl::Duration deadline) = 0;
};

// Seconds to wait before trying again, carried by kResourceExhausted; a few
// seconds where `status` carries none.
int64_t RetryAfterOf(const absl::Status& status);
absl::Status QueueFull(absl::string_view what, int64_t retry_after_seconds);

}  // namespace millrace::coordinator
