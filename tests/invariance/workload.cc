#include "tests/invariance/workload.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace millrace::testing {
namespace {

constexpr int64_t kNumOthers = 16;

std::vector<int32_t> Prompt(int64_t size, int64_t vocab_size, int64_t salt) {
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < size; ++i) {
    prompt.push_back(static_cast<int32_t>(3 + (i * i * 7 + i * 31 + salt * 11) %
                                                  (vocab_size - 3)));
  }
  return prompt;
}

transport::SamplingOptions EveryFilter(uint64_t seed) {
  transport::SamplingOptions sampling;
  sampling.temperature = 0.9f;
  sampling.top_k = 40;
  sampling.top_p = 0.95f;
  sampling.min_p = 0.001f;
  sampling.presence_penalty = 0.1f;
  sampling.frequency_penalty = 0.05f;
  sampling.repetition_penalty = 1.1f;
  sampling.seed = seed;
  sampling.logit_bias = {{5, 1.5f}, {9, -2.0f}};
  return sampling;
}

template <typename T>
std::string FirstDifference(const char* what, const std::vector<T>& got,
                            const std::vector<T>& want) {
  if (got.size() != want.size()) {
    return absl::StrCat(got.size(), " ", what, " instead of ", want.size());
  }
  const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first;
  return at == got.end()
             ? ""
             : absl::StrCat(what, " differ from index ", at - got.begin());
}

}  // namespace

Workload MakeWorkload(const WorkloadSize& size) {
  Workload workload;
  coordinator::GenerateRequest& greedy = workload.greedy;
  greedy.prompt = Prompt(size.prompt_tokens, size.vocab_size, 0);
  greedy.tokens_max = size.tokens_max;
  greedy.want_logits_crc = true;
  greedy.want_prompt_scores = true;
  greedy.want_logprobs = true;
  greedy.top_logprobs = 3;
  coordinator::GenerateRequest& sampled = workload.sampled;
  sampled.prompt = greedy.prompt;
  sampled.tokens_max = size.tokens_max;
  sampled.want_logits_crc = true;
  sampled.want_logprobs = true;
  sampled.sampling = EveryFilter(7);
  for (int64_t i = 0; i < kNumOthers; ++i) {
    coordinator::GenerateRequest& other = workload.others.emplace_back();
    other.prompt =
        Prompt(1 + i % size.other_prompt_max, size.vocab_size, i + 1);
    other.tokens_max = 1 + i % size.other_tokens_max;
    other.want_logits_crc = true;
    other.want_prompt_scores = i % 4 == 1;
    if (i % 2 == 0) {
      other.sampling = EveryFilter(static_cast<uint64_t>(i));
    }
  }
  workload.context = std::max(size.prompt_tokens + size.tokens_max,
                              size.other_prompt_max + size.other_tokens_max);
  // All of them at a time.
  workload.sequences = kNumOthers + 2;
  return workload;
}

absl::StatusOr<Observed> Observe(const model::Checkpoint& checkpoint,
                                 const Configuration& configuration,
                                 kernels::KvType kv_type,
                                 const Workload& workload) {
  cli::ComputeOptions compute;
  compute.stages = configuration.stages;
  compute.num_threads = configuration.threads;
  compute.chunk = configuration.chunk;
  compute.isa = configuration.isa;
  compute.transport = configuration.transport;
  compute.compute = configuration.mode;
  compute.kv_type = kv_type;
  compute.context = workload.context;
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<cli::LocalPipeline> pipeline,
      StartPipeline(checkpoint, compute, workload.sequences));
  coordinator::Engine& engine = pipeline->engine();
  Observed observed;
  observed.greedy = RunToEnd(engine, workload.greedy);
  observed.sampled = RunToEnd(engine, workload.sampled);

  std::vector<std::shared_ptr<OutcomeObserver>> running;
  const auto submit = [&](const coordinator::GenerateRequest& request) {
    running.push_back(std::make_shared<OutcomeObserver>());
    return engine.Submit(request, running.back()).status();
  };
  // The observed ones in the midst of the others.
  for (int64_t i = 0; i < kNumOthers; ++i) {
    if (i == kNumOthers / 2) {
      MILLRACE_RETURN_IF_ERROR(submit(workload.greedy));
      MILLRACE_RETURN_IF_ERROR(submit(workload.sampled));
    }
    MILLRACE_RETURN_IF_ERROR(submit(workload.others[static_cast<size_t>(i)]));
  }
  for (size_t i = 0; i < running.size(); ++i) {
    Outcome outcome = running[i]->Wait();
    if (i == kNumOthers / 2) {
      observed.greedy_among_others = std::move(outcome);
    } else if (i == kNumOthers / 2 + 1) {
      observed.sampled_among_others = std::move(outcome);
    } else {
      observed.others.push_back(std::move(outcome));
    }
  }
  return observed;
}

std::string Difference(const Outcome& got, const Outcome& want) {
  if (got == want) {
    return "";
  }
  if (got.status != want.status) {
    return absl::StrCat("ended with ", got.status.ToString());
  }
  for (const std::string& difference :
       {FirstDifference("logits of prompt rows", got.score_crcs,
                        want.score_crcs),
        FirstDifference("scores", got.scores, want.scores),
        FirstDifference("logits", got.token_crcs, want.token_crcs),
        FirstDifference("tokens", got.tokens, want.tokens),
        FirstDifference("log-probabilities", got.logprobs, want.logprobs),
        FirstDifference("top lists", got.tops, want.tops)}) {
    if (!difference.empty()) {
      return difference;
    }
  }
  return "differs";
}

std::string Difference(const Observed& got, const Observed& want) {
  std::string all;
  const auto add = [&all](const std::string& who,
                          const std::string& difference) {
    if (!difference.empty()) {
      absl::StrAppend(&all, all.empty() ? "" : "; ", who, ": ", difference);
    }
  };
  add("greedy", Difference(got.greedy, want.greedy));
  add("sampled", Difference(got.sampled, want.sampled));
  add("greedy among others", Difference(got.greedy_among_others, want.greedy));
  add("sampled among others",
      Difference(got.sampled_among_others, want.sampled));
  for (size_t i = 0; i < want.others.size(); ++i) {
    add(absl::StrCat("other ", i), Difference(got.others[i], want.others[i]));
  }
  return all;
}

}  // namespace millrace::testing
