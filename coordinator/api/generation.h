#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/api/answer_format.h"
#include "coordinator/api/api_metrics.h"
#include "coordinator/api/completion_session.h"
#include "coordinator/engine/engine.h"
#include "coordinator/http/exchange.h"

namespace millrace::coordinator {

// One sequence of a request and how its choice begins.
struct SequencePlan {
  GenerateRequest request = {};
  std::string echo_text = {};  // in front of the answer
  bool echo = false;
};

// A request to generate, ready to be run.
struct GenerationPlan {
  AnswerHead head;
  std::vector<SequencePlan> sequences;  // in the order of their choices
  CompletionSession::Options session;   // the same for all
  int32_t top_logprobs = 0;
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;
  int64_t prompt_tokens = 0;  // every prompt once
  absl::Duration received;    // on the clock's monotonic scale
};

// What generations work with. Engine, metrics and clock are used on the loop
// only and outlive it; `post` may be called later still and then drops its
// function.
struct GenerationServices {
  Engine* engine = nullptr;
  ApiMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
  // Runs a function on the server's loop, now or later.
  std::function<void(std::function<void()>)> post;
  std::function<void(absl::Duration, std::function<void()>)> post_after;
};

// Runs the sequences of one request and answers it, whole or streamed.
// Everything happens on the server's loop; the engine's callbacks only fill a
// mailbox. Kept alive by the engine's observers, by the exchange's callback for
// a client that goes away, and by posted work; none of them is owned by it.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Loop thread. Submits all sequences or refuses the request.
  static void Run(std::shared_ptr<const GenerationServices> services,
                  GenerationPlan plan, std::shared_ptr<Exchange> exchange);

  Generation(std::shared_ptr<const GenerationServices> services,
             GenerationPlan plan, std::shared_ptr<Exchange> exchange);

 private:
  class Observer;
  struct Started {};
  using Event =
      std::variant<Started, ScoreEvent, TokenEvent, FinishReason, absl::Status>;
  struct Choice {
    std::unique_ptr<CompletionSession> session;
    RequestId id = 0;
    bool submitted = false;
    bool opened = false;  // its first chunk is out
    bool done = false;
    std::vector<ScoreEvent> prompt_scores;
    std::string text;  // of the whole answer, unless streamed
    std::vector<TokenScore> scores;
    int64_t score_points = 0;  // code points of the scores given out
    absl::Duration first_token;
    absl::Duration last_token;
  };

  void Submit();
  // Engine's thread.
  void Deliver(size_t index, Event event);
  void DrainMailbox();
  void Handle(size_t index, Event& event);
  void HandleToken(size_t index, const TokenEvent& event);
  void FinishChoice(size_t index, CompletionSession::Delta rest);
  void Give(size_t index, CompletionSession::Delta delta);
  // The echoed prompt and, for chat, the role.
  void OpenChoice(size_t index);
  [[nodiscard]] ChoicePart PartOf(size_t index) const;
  void StartStream();
  void WriteChunk(const ChoicePart& part);
  void Complete();
  void Fail(const absl::Status& status, RequestOutcome outcome);
  void Abandon();
  void CancelRest();
  void End(RequestOutcome outcome);
  [[nodiscard]] AnswerUsage Usage() const;

  const std::shared_ptr<const GenerationServices> services_;
  const GenerationPlan plan_;
  const std::shared_ptr<Exchange> exchange_;
  const AnswerFormat format_;
  std::vector<Choice> choices_;
  size_t num_done_ = 0;
  bool streaming_ = false;  // the head is out
  bool over_ = false;
  std::string output_;  // chunks made in this turn of the loop

  Mutex mutex_;
  std::vector<std::pair<size_t, Event>> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::coordinator
