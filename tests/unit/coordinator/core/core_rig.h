#pragma once

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/core/pipeline_core.h"
#include "gtest/gtest.h"
#include "tests/simulation/fake_model.h"
#include "tests/simulation/fake_stage.h"

namespace millrace::coordinator {

// What one request's observer would have heard.
struct Heard {
  int64_t starts = 0;
  std::vector<TokenEvent> tokens;
  std::vector<ScoreEvent> scores;
  std::optional<FinishReason> finish;
  std::optional<absl::Status> error;
};

// A core, fake stages and the frames between them, moved by hand.
class CoreRig {
 public:
  explicit CoreRig(CoreConfig the_config)
      : config(std::move(the_config)), core(config) {
    EXPECT_TRUE(config.Validate().ok()) << config.Validate();
    for (size_t i = 0; i < config.stages.size(); ++i) {
      stages.emplace_back(config, static_cast<int64_t>(i));
    }
    core.Connect(now, ++epoch);
  }

  static CoreConfig Config(int64_t num_stages) {
    CoreConfig config;
    for (int64_t i = 0; i < num_stages; ++i) {
      config.stages.push_back(StagePool{.name = "w" + std::to_string(i),
                                        .full_blocks = 64,
                                        .windows = {},
                                        .slots = 32});
    }
    config.context = 1024;
    config.vocab_size = kFakeVocabSize;
    config.chunk = 128;
    config.rows_max = 256;
    return config;
  }

  static GenerateRequest Request(int64_t num_prompt, int64_t tokens_max,
                                 int32_t first = 1) {
    GenerateRequest request;
    for (int64_t i = 0; i < num_prompt; ++i) {
      request.prompt.push_back(static_cast<int32_t>((first + i) % 900));
    }
    request.tokens_max = tokens_max;
    return request;
  }

  RequestId Submit(GenerateRequest request) {
    const absl::StatusOr<RequestId> id = core.Submit(now, std::move(request));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : 0;
  }

  // Sends all that should leave; returns how many frames that was.
  int64_t Send() {
    now += absl::Milliseconds(1);
    int64_t sent = 0;
    transport::Frame frame;
    while (core.PollFrame(now, frame)) {
      under_way.push_back(frame);
      ++sent;
    }
    return sent;
  }

  // The oldest frame passes all stages and comes back.
  void Return() {
    ASSERT_FALSE(under_way.empty());
    now += absl::Milliseconds(1);
    transport::Frame frame = std::move(under_way.front());
    under_way.pop_front();
    for (FakeStage& stage : stages) {
      const absl::Status status = stage.Process(frame);
      ASSERT_TRUE(status.ok()) << status;
    }
    core.FrameReturned(now, frame);
    Listen();
  }

  // Until nothing is under way and nothing wants to leave.
  void Run() {
    for (Send(); !under_way.empty(); Send()) {
      Return();
    }
    Listen();
  }

  void Listen() {
    std::vector<Notice> notices;
    core.TakeNotices(notices);
    for (Notice& notice : notices) {
      Heard& who = heard[notice.id];
      EXPECT_FALSE(who.finish || who.error) << "heard after its end";
      if (auto* token = std::get_if<TokenEvent>(&notice.what)) {
        who.tokens.push_back(*token);
      } else if (auto* score = std::get_if<ScoreEvent>(&notice.what)) {
        who.scores.push_back(*score);
      } else if (auto* reason = std::get_if<FinishReason>(&notice.what)) {
        who.finish = *reason;
      } else if (auto* error = std::get_if<absl::Status>(&notice.what)) {
        who.error = *error;
      } else {
        ++who.starts;
      }
    }
  }

  void ExpectAtRest() {
    EXPECT_EQ(core.num_requests(), 0);
    EXPECT_EQ(core.ledger().sequences(), 0);
    EXPECT_TRUE(core.scheduler().idle());
    for (int64_t i = 0; i < core.ledger().num_stages(); ++i) {
      EXPECT_EQ(core.ledger().BlocksUsed(i), 0);
      EXPECT_EQ(stages[static_cast<size_t>(i)].num_open(), 0);
    }
  }

  void ExpectAnswer(RequestId id, const GenerateRequest& request) {
    const FakeAnswer oracle = FakeOracle(request);
    const Heard& who = heard[id];
    EXPECT_EQ(who.starts, 1);
    ASSERT_EQ(who.tokens.size(), oracle.tokens.size());
    for (size_t i = 0; i < oracle.tokens.size(); ++i) {
      EXPECT_EQ(who.tokens[i].token, oracle.tokens[i].token);
      EXPECT_EQ(who.tokens[i].position, oracle.tokens[i].position);
      EXPECT_EQ(who.tokens[i].logprob, oracle.tokens[i].logprob);
      EXPECT_EQ(who.tokens[i].logits_crc, oracle.tokens[i].logits_crc);
      EXPECT_EQ(who.tokens[i].top.size(), oracle.tokens[i].top.size());
    }
    ASSERT_EQ(who.scores.size(), oracle.scores.size());
    for (size_t i = 0; i < oracle.scores.size(); ++i) {
      EXPECT_EQ(who.scores[i].position, oracle.scores[i].position);
      EXPECT_EQ(who.scores[i].logprob, oracle.scores[i].logprob);
      EXPECT_EQ(who.scores[i].logits_crc, oracle.scores[i].logits_crc);
    }
    ASSERT_TRUE(who.finish.has_value());
    EXPECT_EQ(*who.finish, oracle.reason);
  }

  CoreConfig config;
  PipelineCore core;
  std::deque<FakeStage> stages;
  std::deque<transport::Frame> under_way;
  std::map<RequestId, Heard> heard;
  absl::Duration now = absl::Seconds(1);
  uint64_t epoch = 0;
};

}  // namespace millrace::coordinator
