// What SmolLM2-135M-Instruct says of a text and of a question agrees with its
// weights run in float64; a wrong scale, table or mask moves every number. Runs
// where the environment variable MILLRACE_SMOLLM2 names the GGUF file.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/value_to.hpp"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/support/pipeline_run.h"

namespace millrace::testing {
namespace {

constexpr char kReference[] =
    MILLRACE_TEST_DATA_DIR "/golden-real/smollm2/reference.json";
constexpr size_t kRows = 256;
constexpr size_t kTop = 8;
constexpr double kTolerance = 1e-5;
constexpr int64_t kWindow = 512;

std::vector<double> Numbers(const Json& list) {
  return boost::json::value_to<std::vector<double>>(list);
}
std::vector<int32_t> Ids(const Json& list) {
  return boost::json::value_to<std::vector<int32_t>>(list);
}

// Condenses the first rows of one sequence as the reference does.
class SummaryTap final : public worker::StageTap {
 public:
  explicit SummaryTap(const Json& top_ids)
      : top_ids_(top_ids), at_ids_(kRows), largest_(kRows) {}

  void OnHidden(int64_t layer, const transport::Frame& frame,
                const float* hidden, int64_t num_rows,
                int64_t hidden_size) override {
    sums_.resize(std::max(sums_.size(), static_cast<size_t>(layer) + 1));
    for (int64_t i = 0; i < num_rows * hidden_size; ++i) {
      const double value = hidden[i];
      sums_[static_cast<size_t>(layer)] +=
          value * value / static_cast<double>(kRows * hidden_size);
    }
    if (frame.rows.back().position == kRows - 1) {
      const float* last = hidden + (num_rows - 1) * hidden_size;
      last_row_.assign(last, last + 16);
    }
  }
  void OnLogits(const transport::Row& row, const float* logits,
                int64_t vocab_size) override {
    for (const int32_t id : Ids(top_ids_.as_array()[row.position])) {
      at_ids_[row.position].push_back(logits[id]);
    }
    std::vector<float> sorted(logits, logits + vocab_size);
    std::partial_sort(sorted.begin(), sorted.begin() + kTop, sorted.end(),
                      std::greater<>());
    largest_[row.position].assign(sorted.begin(), sorted.begin() + kTop);
  }

  [[nodiscard]] double RootMeanSquare(size_t layer) const {
    return std::sqrt(sums_[layer]);
  }
  [[nodiscard]] size_t num_layers() const { return sums_.size(); }
  // The last row's first values, of the layer seen last.
  [[nodiscard]] const std::vector<double>& last_row() const {
    return last_row_;
  }
  // [kRows][kTop]: logits of the reference's ids, and the largest ones.
  [[nodiscard]] const std::vector<std::vector<double>>& at_ids() const {
    return at_ids_;
  }
  [[nodiscard]] const std::vector<std::vector<double>>& largest() const {
    return largest_;
  }

 private:
  const Json& top_ids_;
  std::vector<double> sums_;
  std::vector<double> last_row_;
  std::vector<std::vector<double>> at_ids_;
  std::vector<std::vector<double>> largest_;
};

class SmolLm2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("MILLRACE_SMOLLM2");
    if (path == nullptr) {
      GTEST_SKIP() << "MILLRACE_SMOLLM2 does not name the model's file";
    }
    const auto text = ReadFile(kReference, 1 << 20);
    ASSERT_TRUE(text.ok()) << text.status();
    reference_ = ParseJson(*text, kReference).value();
    auto checkpoint = model::Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
  }

  std::unique_ptr<cli::LocalPipeline> Start(kernels::ComputeMode mode,
                                            worker::StageTap* tap = nullptr) {
    cli::ComputeOptions compute;
    compute.isa = kernels::BestIsa();
    compute.compute = mode;
    compute.kv_type = mode == kernels::ComputeMode::kExact
                          ? kernels::KvType::kF32
                          : kernels::KvType::kF16;
    compute.num_threads = 2;
    compute.context = kWindow;
    auto pipeline = StartPipeline(*checkpoint_, compute, 1, tap);
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return *std::move(pipeline);
  }

  // Windows of 512 tokens, the second half of each scored.
  double Perplexity(kernels::ComputeMode mode) {
    const auto pipeline = Start(mode);
    const std::vector<int32_t> ids = Ids(reference_.at("ids"));
    double sum = 0;
    int64_t scored = 0;
    for (size_t begin = 0; begin + kWindow <= ids.size(); begin += kWindow) {
      coordinator::GenerateRequest request;
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
      request.prompt.assign(first, first + kWindow);
      request.tokens_max = 0;
      request.want_prompt_scores = true;
      const Outcome outcome = RunToEnd(pipeline->engine(), std::move(request));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      // scores[i] is of the token at i + 1.
      for (size_t i = kWindow / 2; i + 1 < kWindow; ++i) {
        sum -= static_cast<double>(outcome.scores.at(i));
        ++scored;
      }
    }
    EXPECT_EQ(scored, reference_.at("scored").to_number<int64_t>());
    return std::exp(sum / static_cast<double>(scored));
  }

  std::vector<int32_t> Greedy(kernels::ComputeMode mode) {
    const auto pipeline = Start(mode);
    coordinator::GenerateRequest request;
    request.prompt = Ids(reference_.at("greedy").at("prompt_ids"));
    request.tokens_max = 48;
    request.stop_tokens = checkpoint_->spec().stop_tokens;
    const Outcome outcome = RunToEnd(pipeline->engine(), std::move(request));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    return outcome.tokens;
  }

  Json reference_;
  std::unique_ptr<model::Checkpoint> checkpoint_;
};

TEST_F(SmolLm2Test, ExactHiddenStatesAndLogits) {
  const Json& want = reference_.at("first_256");
  SummaryTap tap(want.at("top8_ids"));
  const auto pipeline = Start(kernels::ComputeMode::kExact, &tap);
  coordinator::GenerateRequest request;
  request.prompt = Ids(reference_.at("ids"));
  request.prompt.resize(kRows);
  request.tokens_max = 0;
  request.want_prompt_scores = true;
  request.want_logits_crc = true;  // so that the last row has logits, too
  ASSERT_TRUE(RunToEnd(pipeline->engine(), std::move(request)).status.ok());

  const std::vector<double> rms = Numbers(want.at("hidden_rms"));
  ASSERT_EQ(tap.num_layers(), rms.size());
  for (size_t layer = 0; layer < rms.size(); ++layer) {
    EXPECT_NEAR(tap.RootMeanSquare(layer), rms[layer], kTolerance * rms[layer])
        << "hidden." << layer;
  }
  const std::vector<double> last =
      Numbers(want.at("last_row_hidden_30_first_16"));
  double scale = 0;
  for (const double value : last) {
    scale = std::max(scale, std::fabs(value));
  }
  ASSERT_EQ(tap.last_row().size(), last.size());
  for (size_t i = 0; i < last.size(); ++i) {
    EXPECT_NEAR(tap.last_row()[i], last[i], kTolerance * scale) << i;
  }
  for (size_t row = 0; row < kRows; ++row) {
    const std::vector<double> top =
        Numbers(want.at("top8_logits").as_array()[row]);
    ASSERT_EQ(tap.at_ids()[row].size(), kTop) << "row " << row;
    for (size_t i = 0; i < kTop; ++i) {
      const double tolerance = kTolerance * std::fabs(top[0]);
      EXPECT_NEAR(tap.at_ids()[row][i], top[i], tolerance) << "row " << row;
      EXPECT_NEAR(tap.largest()[row][i], top[i], tolerance) << "row " << row;
    }
  }
}

TEST_F(SmolLm2Test, ExactPerplexity) {
  const double want = reference_.at("perplexity").to_number<double>();
  EXPECT_NEAR(Perplexity(kernels::ComputeMode::kExact), want,
              kTolerance * want);
}

TEST_F(SmolLm2Test, FastPerplexity) {
  const double want = reference_.at("perplexity").to_number<double>();
  EXPECT_NEAR(Perplexity(kernels::ComputeMode::kFast), want, 0.005 * want);
}

TEST_F(SmolLm2Test, ExactGreedyAnswer) {
  EXPECT_EQ(Greedy(kernels::ComputeMode::kExact),
            Ids(reference_.at("greedy").at("ids")));
}

TEST_F(SmolLm2Test, FastGreedyAnswerWhereNoChoiceIsClose) {
  const std::vector<int32_t> want = Ids(reference_.at("greedy").at("ids"));
  const std::vector<double> margins =
      Numbers(reference_.at("greedy").at("margins"));
  const std::vector<int32_t> got = Greedy(kernels::ComputeMode::kFast);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LT(i, got.size());
    if (got[i] != want[i]) {
      EXPECT_LE(margins[i], 0.5) << "step " << i;
      return;  // what follows another token is another answer
    }
  }
  EXPECT_EQ(got.size(), want.size());
}

}  // namespace
}  // namespace millrace::testing
