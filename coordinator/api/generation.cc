#include "coordinator/api/generation.h"

#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "coordinator/api/api_error.h"
#include "coordinator/api/utf8.h"

namespace millrace::coordinator {
namespace {

// A stream whose prompt still waits begins after this time, so that clients
// and proxies see a live connection; before it an early failure can still be
// told by its status.
constexpr absl::Duration kHeadAfter = absl::Seconds(5);

HttpResponse StreamHead() {
  return {
      .status = 200,
      .content_type = "text/event-stream",
      .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace

// Passes the engine's callbacks on. One for each sequence.
class Generation::Observer final : public RequestObserver {
 public:
  Observer(std::shared_ptr<Generation> generation, size_t index)
      : generation_(std::move(generation)), index_(index) {}

  void OnStart() override { generation_->Deliver(index_, Started{}); }
  void OnPromptScore(const ScoreEvent& event) override {
    generation_->Deliver(index_, event);
  }
  void OnToken(const TokenEvent& event) override {
    generation_->Deliver(index_, event);
  }
  void OnFinish(FinishReason reason) override {
    generation_->Deliver(index_, reason);
  }
  void OnError(const absl::Status& error) override {
    generation_->Deliver(index_, error);
  }

 private:
  const std::shared_ptr<Generation> generation_;
  const size_t index_;
};

Generation::Generation(std::shared_ptr<const GenerationServices> services,
                       GenerationPlan plan, std::shared_ptr<Exchange> exchange)
    : services_(std::move(services)),
      plan_(std::move(plan)),
      exchange_(std::move(exchange)),
      format_(plan_.head, plan_.session.tokenizer),
      choices_(plan_.sequences.size()) {
  for (Choice& choice : choices_) {
    choice.session = std::make_unique<CompletionSession>(plan_.session);
  }
}

void Generation::Run(std::shared_ptr<const GenerationServices> services,
                     GenerationPlan plan, std::shared_ptr<Exchange> exchange) {
  auto generation = std::make_shared<Generation>(
      std::move(services), std::move(plan), std::move(exchange));
  generation->exchange_->OnGone([generation] { generation->Abandon(); });
  generation->Submit();
  if (generation->plan_.stream) {
    generation->services_->post_after(
        kHeadAfter, [weak = std::weak_ptr<Generation>(generation)] {
          if (const auto self = weak.lock(); self != nullptr && !self->over_) {
            self->StartStream();
          }
        });
  }
}

void Generation::Submit() {
  for (size_t i = 0; i < choices_.size() && !over_; ++i) {
    absl::StatusOr<RequestId> id = services_->engine->Submit(
        plan_.sequences[i].request,
        std::make_shared<Observer>(shared_from_this(), i));
    if (!id.ok()) {
      Fail(id.status(), RequestOutcome::kRefused);
      return;
    }
    choices_[i].id = *id;
    choices_[i].submitted = true;
  }
}

void Generation::Deliver(size_t index, Event event) {
  {
    MutexLock lock(mutex_);
    mailbox_.emplace_back(index, std::move(event));
    if (scheduled_) {
      return;
    }
    scheduled_ = true;
  }
  services_->post([self = shared_from_this()] { self->DrainMailbox(); });
}

void Generation::DrainMailbox() {
  std::vector<std::pair<size_t, Event>> events;
  {
    MutexLock lock(mutex_);
    events.swap(mailbox_);
    scheduled_ = false;
  }
  for (auto& [index, event] : events) {
    if (over_) {
      return;
    }
    if (!choices_[index].done) {
      Handle(index, event);
    }
  }
  if (!over_ && !output_.empty()) {
    exchange_->Write(std::exchange(output_, std::string()));
  }
}

void Generation::Handle(size_t index, Event& event) {
  if (auto* score = std::get_if<ScoreEvent>(&event)) {
    choices_[index].prompt_scores.push_back(std::move(*score));
  } else if (const auto* token = std::get_if<TokenEvent>(&event)) {
    HandleToken(index, *token);
  } else if (const auto* reason = std::get_if<FinishReason>(&event)) {
    FinishChoice(index, choices_[index].session->OnFinish(*reason));
  } else if (const auto* status = std::get_if<absl::Status>(&event)) {
    Fail(*status, RequestOutcome::kFailed);
  } else if (plan_.stream) {
    StartStream();
  }
}

void Generation::HandleToken(size_t index, const TokenEvent& event) {
  Choice& choice = choices_[index];
  choice.last_token = services_->clock->Monotonic();
  if (choice.session->num_tokens() == 0) {
    choice.first_token = choice.last_token;
    services_->metrics->ObserveFirstToken(choice.first_token - plan_.received);
  }
  CompletionSession::Delta delta = choice.session->OnToken(event);
  if (choice.session->stopped()) {
    services_->engine->Cancel(choice.id);
    FinishChoice(index, std::move(delta));
    return;
  }
  if (!delta.text.empty() || !delta.scores.empty()) {
    Give(index, std::move(delta));
  }
}

void Generation::FinishChoice(size_t index, CompletionSession::Delta rest) {
  Choice& choice = choices_[index];
  if (choice.session->num_tokens() > 1) {
    services_->metrics->ObserveTokenInterval(
        (choice.last_token - choice.first_token) /
        static_cast<double>(choice.session->num_tokens() - 1));
  }
  if (!rest.text.empty() || !rest.scores.empty()) {
    Give(index, std::move(rest));
  }
  OpenChoice(index);
  choice.done = true;
  ++num_done_;
  if (plan_.stream) {
    ChoicePart part = PartOf(index);
    part.finish_reason = choice.session->finish_reason();
    WriteChunk(part);
  }
  if (num_done_ == choices_.size()) {
    Complete();
  }
}

ChoicePart Generation::PartOf(size_t index) const {
  return {.index = static_cast<int64_t>(index),
          .text_offset = choices_[index].score_points,
          .top_logprobs = plan_.top_logprobs};
}

void Generation::OpenChoice(size_t index) {
  Choice& choice = choices_[index];
  if (choice.opened) {
    return;
  }
  choice.opened = true;
  const SequencePlan& sequence = plan_.sequences[index];
  if (plan_.stream && plan_.head.chat) {
    ChoicePart part = PartOf(index);
    part.with_role = true;
    WriteChunk(part);
  }
  if (!sequence.echo) {
    return;
  }
  CompletionSession::Delta echo{.text = sequence.echo_text};
  if (plan_.session.want_logprobs) {
    echo.scores =
        PromptScores(plan_.session.tokenizer, sequence.request.prompt,
                     choice.prompt_scores, plan_.session.skip_special);
  }
  Give(index, std::move(echo));
}

void Generation::Give(size_t index, CompletionSession::Delta delta) {
  OpenChoice(index);
  Choice& choice = choices_[index];
  if (!plan_.stream) {
    choice.text += delta.text;
    std::move(delta.scores.begin(), delta.scores.end(),
              std::back_inserter(choice.scores));
    return;
  }
  ChoicePart part = PartOf(index);
  for (const TokenScore& score : delta.scores) {
    choice.score_points += CodePoints(score.text);
  }
  part.text = std::move(delta.text);
  part.with_logprobs = plan_.session.want_logprobs;
  part.scores = std::move(delta.scores);
  WriteChunk(part);
}

void Generation::StartStream() {
  if (streaming_) {
    return;
  }
  streaming_ = true;
  exchange_->Start(StreamHead(), std::string(kSseKeepAlive));
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (plan_.head.chat) {
      OpenChoice(i);
    }
  }
  exchange_->Write(std::exchange(output_, std::string()));
}

void Generation::WriteChunk(const ChoicePart& part) {
  StartStream();
  output_ += SseData(format_.Chunk(part, plan_.include_usage));
}

AnswerUsage Generation::Usage() const {
  AnswerUsage usage{.prompt_tokens = plan_.prompt_tokens};
  for (const Choice& choice : choices_) {
    usage.completion_tokens += choice.session->num_tokens();
  }
  return usage;
}

void Generation::Complete() {
  if (plan_.stream) {
    if (plan_.include_usage) {
      output_ += SseData(format_.UsageChunk(Usage()));
    }
    output_ += std::string(kSseDone);
    exchange_->Write(std::exchange(output_, std::string()));
    exchange_->End();
    End(RequestOutcome::kCompleted);
    return;
  }
  std::vector<ChoicePart> parts;
  for (size_t i = 0; i < choices_.size(); ++i) {
    ChoicePart part = PartOf(i);
    part.text = std::move(choices_[i].text);
    part.scores = std::move(choices_[i].scores);
    part.with_logprobs = plan_.session.want_logprobs;
    part.finish_reason = choices_[i].session->finish_reason();
    if (plan_.return_token_ids) {
      part.token_ids = &choices_[i].session->tokens();
    }
    parts.push_back(std::move(part));
  }
  exchange_->Send({.status = 200,
                   .content_type = "application/json",
                   .body = WriteJson(format_.Whole(parts, Usage()))});
  End(RequestOutcome::kCompleted);
}

void Generation::Fail(const absl::Status& status, RequestOutcome outcome) {
  if (over_) {
    return;
  }
  // Cancelled by somebody else than the client: the server is going down.
  const absl::Status told =
      status.code() == absl::StatusCode::kCancelled
          ? MakeError(absl::StatusCode::kUnavailable, "server",
                      "is shutting down and gave up this request")
          : status;
  if (told.code() == absl::StatusCode::kInternal) {
    MILLRACE_LOG(Warning) << "a request failed: " << told.message();
  }
  CancelRest();
  if (streaming_) {
    output_ += SseData(ErrorJson(ApiErrorFrom(told)));
    exchange_->Write(std::exchange(output_, std::string()));
    exchange_->End();
  } else {
    exchange_->Send(ErrorResponse(told));
  }
  End(outcome);
}

void Generation::Abandon() {
  if (over_) {
    return;
  }
  CancelRest();
  End(RequestOutcome::kCancelled);
}

void Generation::CancelRest() {
  for (const Choice& choice : choices_) {
    if (choice.submitted && !choice.done) {
      services_->engine->Cancel(choice.id);
    }
  }
}

void Generation::End(RequestOutcome outcome) {
  over_ = true;
  services_->metrics->CountRequest(outcome);
  services_->metrics->ObserveRequest(services_->clock->Monotonic() -
                                     plan_.received);
}

}  // namespace millrace::coordinator
