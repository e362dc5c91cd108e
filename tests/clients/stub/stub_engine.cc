#include "tests/clients/stub/stub_engine.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace millrace::coordinator {
namespace {

constexpr uint8_t kSmile[4] = {0xF0, 0x9F, 0x99, 0x82};

uint64_t Mix(uint64_t state, uint64_t value) {
  state ^= value + 0x9E3779B97F4A7C15ull + (state << 6) + (state >> 2);
  state *= 0xBF58476D1CE4E5B9ull;
  return state ^ (state >> 29);
}

}  // namespace

StubEngine::StubEngine(const Options& options) : options_(options) {
  {
    MutexLock lock(mutex_);
    snapshot_.ready = true;
    snapshot_.context = options.context;
    snapshot_.vocab_size = options.vocab_size;
    snapshot_.microbatch_slots = 4;
    for (int64_t i = 0; i < 3; ++i) {
      StageSnapshot stage;
      stage.name = absl::StrCat("stage-", i);
      stage.first_layer = i * 4;
      stage.last_layer = i * 4 + 3;
      stage.kv_blocks_total = 256;
      stage.kernels = {{"matmul", "fast", "avx2"}, {"rope", "", "scalar"}};
      snapshot_.stages.push_back(stage);
    }
  }
  thread_ = std::thread([this]() noexcept { Work(); });
}

StubEngine::~StubEngine() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

absl::StatusOr<RequestId> StubEngine::Submit(
    GenerateRequest request, std::shared_ptr<RequestObserver> observer) {
  MutexLock lock(mutex_);
  if (!snapshot_.ready) {
    return absl::UnavailableError("cluster: is not ready");
  }
  if (static_cast<int64_t>(waiting_.size()) >= options_.waiting_max) {
    ++snapshot_.requests_refused;
    return QueueFull("is full; stage-1 binds", 1);
  }
  auto sequence = std::make_shared<Sequence>();
  sequence->id = next_id_++;
  sequence->prefill_left =
      options_.prefill_per_token * static_cast<double>(request.prompt.size());
  sequence->request = std::move(request);
  sequence->observer = std::move(observer);
  waiting_.push_back(sequence);
  changed_.NotifyAll();
  return sequence->id;
}

void StubEngine::Cancel(RequestId id) {
  MutexLock lock(mutex_);
  cancelled_.push_back(id);
}

EngineSnapshot StubEngine::Snapshot() const {
  MutexLock lock(mutex_);
  EngineSnapshot out = snapshot_;
  out.requests_running = static_cast<int64_t>(running_.size());
  out.requests_waiting = static_cast<int64_t>(waiting_.size());
  return out;
}

void StubEngine::FailAll(absl::Status status) {
  MutexLock lock(mutex_);
  failure_ = std::move(status);
}

void StubEngine::SetReady(bool ready) {
  MutexLock lock(mutex_);
  snapshot_.ready = ready;
  snapshot_.not_ready_reason = ready ? "" : "stage-1 is lost";
  snapshot_.stages[1].alive = ready;
}

void StubEngine::AwaitIdle() {
  MutexLock lock(mutex_);
  while (!running_.empty() || !waiting_.empty()) {
    changed_.Wait(mutex_);
  }
}

void StubEngine::Drain(absl::Duration deadline) {
  const absl::Time end = absl::Now() + deadline;
  MutexLock lock(mutex_);
  snapshot_.ready = false;
  snapshot_.not_ready_reason = "is draining";
  while (!running_.empty() || !waiting_.empty()) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) {
      for (const auto& list : {running_}) {
        for (const auto& sequence : list) {
          cancelled_.push_back(sequence->id);
        }
      }
      for (const auto& sequence : waiting_) {
        cancelled_.push_back(sequence->id);
      }
      changed_.WaitFor(mutex_, absl::Milliseconds(20));
      continue;
    }
    changed_.WaitFor(mutex_, left);
  }
}

void StubEngine::Work() noexcept {
  while (true) {
    std::vector<std::shared_ptr<Sequence>> batch;
    absl::Status failure;
    {
      MutexLock lock(mutex_);
      while (!stop_ && running_.empty() && waiting_.empty()) {
        changed_.Wait(mutex_);
      }
      if (stop_) {
        return;
      }
      changed_.WaitFor(mutex_, options_.step);
      while (!waiting_.empty() &&
             static_cast<int64_t>(running_.size()) < options_.running_max) {
        running_.push_back(waiting_.front());
        waiting_.pop_front();
      }
      for (const auto& sequence : running_) {
        sequence->cancelled = sequence->cancelled ||
                              absl::c_linear_search(cancelled_, sequence->id);
      }
      batch = running_;
      failure = failure_;
    }
    std::vector<RequestId> over;
    for (const auto& sequence : batch) {
      if (Step(*sequence, failure)) {
        over.push_back(sequence->id);
      }
    }
    MutexLock lock(mutex_);
    std::erase_if(running_, [&](const auto& sequence) {
      return absl::c_linear_search(over, sequence->id);
    });
    if (running_.empty() && waiting_.empty()) {
      cancelled_.clear();
    }
    changed_.NotifyAll();
  }
}

bool StubEngine::Step(Sequence& sequence, const absl::Status& failure) {
  if (sequence.cancelled || !failure.ok()) {
    {
      MutexLock lock(mutex_);
      ++(sequence.cancelled ? snapshot_.requests_cancelled
                            : snapshot_.requests_failed);
    }
    sequence.observer->OnError(
        sequence.cancelled ? absl::CancelledError("was cancelled") : failure);
    return true;
  }
  const auto num_prompt = static_cast<int64_t>(sequence.request.prompt.size());
  if (!sequence.started) {
    sequence.started = true;
    sequence.observer->OnStart();
    {
      MutexLock lock(mutex_);
      snapshot_.prompt_tokens += num_prompt;
    }
    for (int64_t i = 1; sequence.request.want_prompt_scores && i < num_prompt;
         ++i) {
      sequence.observer->OnPromptScore(
          {.position = i, .logprob = -0.5F, .top = {}, .logits_crc = 0});
    }
  }
  sequence.prefill_left -= options_.step;
  if (sequence.prefill_left > absl::ZeroDuration()) {
    return false;
  }
  const int64_t wanted = sequence.request.tokens_max;
  if (static_cast<int64_t>(sequence.tokens.size()) < wanted) {
    const int32_t token = NextToken(sequence);
    const TokenEvent event = EventFor(sequence, token);
    sequence.tokens.push_back(token);
    {
      MutexLock lock(mutex_);
      ++snapshot_.generated_tokens;
    }
    sequence.observer->OnToken(event);
    if (absl::c_linear_search(sequence.request.stop_tokens, token)) {
      sequence.observer->OnFinish(FinishReason::kStop);
      return true;
    }
  }
  if (static_cast<int64_t>(sequence.tokens.size()) < wanted) {
    return false;
  }
  {
    MutexLock lock(mutex_);
    ++snapshot_.requests_finished;
  }
  sequence.observer->OnFinish(FinishReason::kLength);
  return true;
}

int32_t StubEngine::NextToken(const Sequence& sequence) const {
  const transport::SamplingOptions& sampling = sequence.request.sampling;
  uint64_t state = 1;
  bool beyond_ascii = false;
  for (const int32_t id : sequence.request.prompt) {
    state = Mix(state, static_cast<uint64_t>(id));
    beyond_ascii = beyond_ascii || (id >= 128 && id < 256);
  }
  for (const int32_t id : sequence.tokens) {
    state = Mix(state, static_cast<uint64_t>(id));
  }
  if (sampling.temperature > 0 && sampling.top_k != 1) {
    state = Mix(Mix(state, sampling.seed), sampling.choice);
  }
  for (const transport::LogitBias& entry : sampling.logit_bias) {
    if (entry.bias > 50) {
      return entry.token;
    }
  }
  const size_t turn = sequence.tokens.size() % 8;
  if (beyond_ascii && turn >= 4) {
    return kSmile[turn - 4];
  }
  const auto words =
      static_cast<uint64_t>(options_.vocab_size - options_.first_word);
  auto token = static_cast<int32_t>(state % words) + options_.first_word;
  for (const transport::LogitBias& entry : sampling.logit_bias) {
    if (entry.bias < -50 && entry.token == token) {
      token = options_.first_word;
    }
  }
  return token;
}

TokenEvent StubEngine::EventFor(const Sequence& sequence, int32_t token) const {
  TokenEvent event;
  event.token = token;
  event.position = static_cast<int64_t>(sequence.request.prompt.size() +
                                        sequence.tokens.size());
  if (sequence.request.want_logprobs) {
    event.logprob = -0.25F;
    for (int32_t i = 0; i < sequence.request.top_logprobs; ++i) {
      event.top.push_back(
          {static_cast<int32_t>((token + i) % options_.vocab_size),
           -0.25F - 3.0F * static_cast<float>(i)});
    }
  }
  return event;
}

}  // namespace millrace::coordinator
