// Once warm, a pipeline of stages in one process decodes without allocating for
// its tokens and without a system call on any thread: engine, links, stages and
// their pools, with as many top log-probabilities as there can be. Waiting is
// not meant (futex, sched_yield, the clock). A vector made anew for a token or
// a read() in a step fails it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <tuple>

#include "gtest/gtest.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/counted_system_calls.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_models.h"

namespace millrace::testing {
namespace {

constexpr int64_t kRequests = 3;
constexpr int64_t kPromptTokens = 9;
constexpr int64_t kTokens = 480;  // eight blocks of keys and values
// Warm when every request has had as many, measured until the first of them
// has had as many: none has ended then.
constexpr int64_t kWarm = 20;
constexpr int64_t kMeasured = 440;

// What the child found, in memory that both see.
struct Report {
  std::atomic<int64_t> tokens[kRequests] = {};
  std::atomic<int64_t> ended{0};
  SystemCalls system_calls;
  // Counted up to the token that ends the measurement, by the thread that
  // brings it: this one may be late to see it, when requests have ended.
  std::atomic<int64_t> allocations{-1};
  std::atomic<int64_t> calls{-1};
};

class TokenCounter final : public coordinator::RequestObserver {
 public:
  TokenCounter(Report& report, int64_t index)
      : report_(report), tokens_(report.tokens[index]) {}
  void OnToken(const coordinator::TokenEvent&) override {
    if (++tokens_ == kMeasured && report_.calls < 0) {
      report_.allocations = NumAllocations();
      report_.calls = report_.system_calls.num;
    }
  }
  void OnFinish(coordinator::FinishReason) override { ++report_.ended; }
  void OnError(const absl::Status&) override { ++report_.ended; }

 private:
  Report& report_;
  std::atomic<int64_t>& tokens_;
};

coordinator::GenerateRequest RequestOf(int64_t index) {
  coordinator::GenerateRequest request;
  for (int64_t i = 0; i < kPromptTokens; ++i) {
    request.prompt.push_back(static_cast<int32_t>(3 + (i * 7 + index) % 90));
  }
  request.tokens_max = kTokens;
  request.want_logits_crc = index == 0;
  request.want_logprobs = index != 1;
  request.top_logprobs = index == 0 ? 5 : 20;
  if (index == 1) {
    request.sampling.temperature = 1;
    request.sampling.top_p = 0.9f;
    request.sampling.repetition_penalty = 1.2f;
  }
  return request;
}

// Why a child ended early, as exit code.
enum ChildEnd : int {
  kDone = 0,
  kNoPipeline,
  kNotSubmitted,
  kNoFilter,
  kLate,
  kEnded
};

// Waits until every request has had its first tokens, without a call that would
// count; false where one ends before.
bool AwaitWarm(const Report& report) {
  for (const std::atomic<int64_t>& tokens : report.tokens) {
    while (tokens < kWarm) {
      if (report.ended > 0) {
        return false;
      }
      std::this_thread::yield();
    }
  }
  return true;
}

int64_t MostTokens(const Report& report) {
  int64_t most = 0;
  for (const std::atomic<int64_t>& tokens : report.tokens) {
    most = std::max<int64_t>(most, tokens);
  }
  return most;
}

// Does not return, nor take anything down: that would call the system.
[[noreturn]] void DecodeInChild(const model::Checkpoint& checkpoint,
                                kernels::KvType kv_type, Report& report) {
  alarm(200);  // ends a child that hangs
  cli::ComputeOptions compute;
  compute.stages = 2;
  compute.num_threads = 2;
  compute.chunk = 4;
  compute.isa = kernels::BestIsa();
  compute.kv_type = kv_type;
  compute.context = kPromptTokens + kTokens;
  const auto pipeline = StartPipeline(checkpoint, compute, kRequests);
  if (!pipeline.ok()) {
    _exit(kNoPipeline);
  }
  for (int64_t i = 0; i < kRequests; ++i) {
    if (!(*pipeline)
             ->engine()
             .Submit(RequestOf(i), std::make_shared<TokenCounter>(report, i))
             .ok()) {
      _exit(kNotSubmitted);
    }
  }
  if (!AwaitWarm(report)) {
    _exit(kEnded);
  }
  if (CountSystemCalls(report.system_calls) != 0) {
    _exit(kNoFilter);
  }
  const int64_t before = NumAllocations();
  // Too late for a measurement where most of it is over.
  if (MostTokens(report) > kMeasured / 2) {
    _exit(kLate);
  }
  while (report.calls < 0 && report.ended < kRequests) {
    std::this_thread::yield();
  }
  report.allocations -= before;
  _exit(report.calls < 0 ? kEnded : kDone);
}

class DataPathTest
    : public ::testing::TestWithParam<std::tuple<TinyFamily, kernels::KvType>> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer calls the system itself";
#endif
    TinyModel model;
    model.family = std::get<0>(GetParam());
    model.tokenizer = false;
    WriteTinyFolder(model, folder_.path());
    checkpoint_ = model::Checkpoint::Open(folder_.path()).value();
    void* memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    report_ = new (memory) Report();
  }
  void TearDown() override {
    if (report_ != nullptr) {
      munmap(report_, sizeof(Report));
    }
  }

  TempDir folder_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
  Report* report_ = nullptr;
};

TEST_P(DataPathTest, DecodesWithoutAllocationOrSystemCall) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DecodeInChild(*checkpoint_, std::get<1>(GetParam()), *report_);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status))
      << "ended by signal " << WTERMSIG(status) << " after "
      << MostTokens(*report_) << " tokens";
  if (WEXITSTATUS(status) == kNoFilter) {
    GTEST_SKIP() << "this kernel lets no filter of system calls be set";
  }
  ASSERT_EQ(WEXITSTATUS(status), kDone);
  EXPECT_EQ(report_->calls, 0)
      << "the first was number " << report_->system_calls.first;
  EXPECT_EQ(report_->allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Families, DataPathTest,
    ::testing::Values(std::tuple(TinyFamily::kLlama, kernels::KvType::kF16),
                      std::tuple(TinyFamily::kLlama, kernels::KvType::kInt8),
                      std::tuple(TinyFamily::kQwen3Moe, kernels::KvType::kF16)),
    [](const auto& info) {
      return std::string(TinyFamilyName(std::get<0>(info.param))) +
             (std::get<1>(info.param) == kernels::KvType::kInt8 ? "_int8" : "");
    });

}  // namespace
}  // namespace millrace::testing
