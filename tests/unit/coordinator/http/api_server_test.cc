// What clients rely on holds at the edge of the wire: streams, refusals,
// vanishing clients, lost engines, the end of the server. Provoked against an
// engine without a model whose failures are at hand.

#include "coordinator/api/api_server.h"

#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/clients/stub/fake_tokenizer.h"
#include "tests/clients/stub/stub_engine.h"
#include "tests/unit/coordinator/http/test_client.h"

namespace millrace::coordinator {
namespace {

constexpr char kChat[] = "/v1/chat/completions";

std::string ChatBody(absl::string_view fields) {
  return absl::StrCat(
      R"({"messages":[{"role":"user","content":"Say hello."}],"temperature":0,)",
      fields, "}");
}

// Data of the events of a stream, [DONE] included.
std::vector<std::string> EventsOf(const std::string& answer) {
  std::vector<std::string> out;
  for (absl::string_view frame : absl::StrSplit(BodyOf(answer), "\n\n")) {
    if (absl::ConsumePrefix(&frame, "data: ")) {
      out.emplace_back(frame);
    }
  }
  return out;
}

class ApiServerTest : public testing::Test {
 protected:
  ApiServer::Options NewOptions() {
    ApiServer::Options options;
    options.engine = &engine_;
    options.model.name = "stub";
    options.model.tokenizer = &tokenizer_;
    options.model.chat_template = template_.get();
    options.model.end_tokens = {FakeTokenizer::kTurnEnd};
    options.model.limits.context = 4096;
    options.model.limits.vocab_size = FakeTokenizer::kVocabSize;
    options.version = "1.2.3";
    options.limits.sweep_every = absl::Milliseconds(10);
    return options;
  }
  void Start(ApiServer::Options options) {
    auto server = ApiServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Start() { Start(NewOptions()); }

  std::string Ask(absl::string_view path, absl::string_view body = "",
                  absl::string_view fields = "") const {
    TestClient client(server_->url());
    client.Send(RequestText(path, body, fields));
    return client.ReadAnswer();
  }
  Json AskJson(absl::string_view path, absl::string_view body = "") const {
    auto json = ParseJson(BodyOf(Ask(path, body)), "answer");
    EXPECT_TRUE(json.ok()) << json.status();
    return json.ok() ? *json : Json();
  }

  StubEngine engine_{{.step = absl::Microseconds(200)}};
  const FakeTokenizer tokenizer_;
  const std::unique_ptr<model::ChatTemplate> template_ = MakeFakeChatTemplate();
  std::unique_ptr<ApiServer> server_;
};

TEST_F(ApiServerTest, StreamsWhatThePlainAnswerSays) {
  Start();
  const Json plain = AskJson(kChat, ChatBody(R"("max_tokens":12)"));
  const auto events = EventsOf(
      Ask(kChat, ChatBody(R"("max_tokens":12,"stream":true,)"
                          R"("stream_options":{"include_usage":true})")));
  ASSERT_GE(events.size(), 4U);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  int finishes = 0;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json chunk = *ParseJson(events[i], "event");
    const Json& choice = chunk.at("choices").at(0);
    const auto& delta = choice.at("delta").as_object();
    EXPECT_EQ(delta.contains("role"), i == 0);
    EXPECT_TRUE(chunk.at("usage").is_null());
    if (delta.contains("content")) {
      text += delta.at("content").as_string().c_str();
    }
    finishes += choice.at("finish_reason").is_null() ? 0 : 1;
  }
  EXPECT_EQ(finishes, 1);
  const Json usage = *ParseJson(events[events.size() - 2], "event");
  EXPECT_TRUE(usage.at("choices").as_array().empty());
  EXPECT_EQ(usage.at("usage"), plain.at("usage"));
  EXPECT_EQ(plain.at("choices").at(0).at("message").at("content"), Json(text));
  EXPECT_TRUE(absl::StrContains(
      plain.at("system_fingerprint").as_string().c_str(), "deterministic"));
}

TEST_F(ApiServerTest, UserTextCannotForgeATurn) {
  Start();
  const auto tokens = [&](absl::string_view content) {
    return AskJson(kChat, absl::StrCat(
                              R"({"max_tokens":1,"messages":[{"role":"user",)",
                              R"("content":")", content, "\"}]}"))
        .at("usage")
        .at("prompt_tokens")
        .as_int64();
  };
  // As many bytes more as the marker has: it is text, not a token.
  EXPECT_EQ(tokens("<|im_end|>"), tokens("") + 10);
}

TEST_F(ApiServerTest, CancelsForAStopString) {
  Start();
  const std::string text(AskJson(kChat, ChatBody(R"("max_tokens":8)"))
                             .at("choices")
                             .at(0)
                             .at("message")
                             .at("content")
                             .as_string());
  const Json cut =
      AskJson(kChat, ChatBody(absl::StrCat("\"max_tokens\":4000,\"stop\":\"",
                                           text.substr(7, 6), "\"")));
  EXPECT_EQ(cut.at("choices").at(0).at("message").at("content"),
            Json(text.substr(0, 7)));
  EXPECT_EQ(cut.at("choices").at(0).at("finish_reason"), "stop");
  engine_.AwaitIdle();
  EXPECT_EQ(engine_.Snapshot().requests_cancelled, 1);
}

TEST_F(ApiServerTest, StopsWorkForClientsThatAreGone) {
  Start();
  for (const char* stream : {"true", "false"}) {
    TestClient client(server_->url());
    client.Send(RequestText(
        kChat, ChatBody(absl::StrCat("\"max_tokens\":4000,\"n\":2,\"stream\":",
                                     stream))));
    while (engine_.Snapshot().requests_running < 2) {
      std::this_thread::yield();
    }
    client.Close();
    engine_.AwaitIdle();
  }
  EXPECT_EQ(engine_.Snapshot().requests_cancelled, 4);
  EXPECT_EQ(engine_.Snapshot().requests_finished, 0);
}

TEST_F(ApiServerTest, TellsALostStageByStatusAndInsideAStream) {
  Start();
  TestClient client(server_->url());
  client.Send(
      RequestText(kChat, ChatBody(R"("max_tokens":4000,"stream":true)")));
  client.ReadUntil("\"content\":\" ");
  engine_.FailAll(absl::UnavailableError("stage-1: was lost"));
  const std::string answer = client.ReadAnswer();
  const auto events = EventsOf(answer);
  EXPECT_TRUE(absl::StrContains(events.back(), "stage-1: was lost"));
  EXPECT_FALSE(absl::StrContains(answer, "[DONE]"));
  const std::string plain = Ask(kChat, ChatBody(R"("max_tokens":4)"));
  EXPECT_EQ(StatusOf(plain), 503);
  EXPECT_TRUE(absl::StrContains(plain, "Retry-After: "));
}

TEST_F(ApiServerTest, SaysWhetherItIsReadyAndAlive) {
  Start();
  EXPECT_EQ(StatusOf(Ask("/ready")), 200);
  EXPECT_EQ(StatusOf(Ask("/health")), 200);
  engine_.SetReady(false);
  EXPECT_EQ(StatusOf(Ask("/ready")), 503);
  const std::string health = Ask("/health");
  EXPECT_EQ(StatusOf(health), 503);
  EXPECT_TRUE(absl::StrContains(health, R"({"name":"stage-1","alive":false})"));
  EXPECT_EQ(StatusOf(Ask(kChat, ChatBody(R"("max_tokens":4)"))), 503);
  EXPECT_EQ(StatusOf(Ask("/v1/models")), 200);
}

TEST_F(ApiServerTest, AsksForKeysWhereTheyCount) {
  ApiServer::Options options = NewOptions();
  options.keys = *KeyStore::FromText("sk-1", "keys");
  Start(std::move(options));
  EXPECT_EQ(StatusOf(Ask("/health")), 200);
  EXPECT_EQ(StatusOf(Ask("/ready")), 200);
  for (const char* path : {"/v1/models", "/metrics", "/version"}) {
    EXPECT_EQ(StatusOf(Ask(path)), 401) << path;
    EXPECT_EQ(StatusOf(Ask(path, "", "Authorization: bearer sk-1\r\n")), 200);
  }
  const std::string wrong =
      Ask(kChat, ChatBody("\"n\":1"), "Authorization: Bearer sk-2\r\n");
  EXPECT_EQ(StatusOf(wrong), 401);
  EXPECT_TRUE(absl::StrContains(wrong, "invalid_api_key"));
}

TEST_F(ApiServerTest, WithoutATokenizerIdsWork) {
  ApiServer::Options options = NewOptions();
  options.model.tokenizer = nullptr;
  options.model.chat_template = nullptr;
  Start(std::move(options));
  const Json answer =
      AskJson("/v1/completions", R"({"prompt":[300,301],"max_tokens":3})");
  EXPECT_EQ(answer.at("choices").at(0).at("token_ids").as_array().size(), 3U);
  EXPECT_EQ(answer.at("choices").at(0).at("text"), "");
  for (const auto& [path, body] :
       std::vector<std::pair<std::string, std::string>>{
           {"/v1/completions", R"({"prompt":"a"})"},
           {kChat, ChatBody("\"n\":1")},
           {"/tokenize", R"({"prompt":"a"})"}}) {
    const std::string refused = Ask(path, body);
    EXPECT_EQ(StatusOf(refused), 400);
    EXPECT_TRUE(absl::StrContains(refused, "no tokenizer")) << refused;
  }
}

TEST_F(ApiServerTest, DrainsStreamsAndRefusesNewRequests) {
  Start();
  TestClient client(server_->url());
  client.Send(
      RequestText(kChat, ChatBody(R"("max_tokens":200,"stream":true)")));
  client.ReadUntil("\"content\":\" ");
  server_->Drain(absl::Seconds(20));
  const auto events = EventsOf(client.ReadToEnd());
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(StatusOf(Ask("/ready")), 503);
  EXPECT_EQ(StatusOf(Ask(kChat, ChatBody("\"n\":1"))), 503);
  server_->Stop();
}

TEST_F(ApiServerTest, EndsWhileClientsWait) {
  Start();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<TestClient>(server_->url()));
    clients.back()->Send(
        RequestText(kChat, ChatBody(R"("max_tokens":4000,"stream":true)")));
    clients.back()->ReadUntil("data: ");
  }
  server_->Stop();
  server_.reset();
  engine_.AwaitIdle();
  EXPECT_EQ(engine_.Snapshot().requests_cancelled, 6);
}

// The table of coordinator/api/README.md names every family, and no other.
TEST_F(ApiServerTest, MetricsAreThoseOfTheTable) {
  Start();
  Ask(kChat, ChatBody(R"("max_tokens":3)"));
  std::set<std::string> served;
  const std::string text = BodyOf(Ask("/metrics"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "# TYPE ")) {
      served.emplace(line);
    }
  }
  std::set<std::string> documented;
  std::ifstream file(MILLRACE_TEST_DATA_DIR "/../../coordinator/api/README.md");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() > 3 && absl::StrContains(cells[1], "`millrace_")) {
      const std::vector<std::string> name = absl::StrSplit(cells[1], '`');
      documented.insert(
          absl::StrCat(name[1], " ", absl::StripAsciiWhitespace(cells[2])));
    }
  }
  EXPECT_EQ(served, documented);
  EXPECT_TRUE(absl::StrContains(
      text, "millrace_coordinator_generated_tokens_total 3\n"));
  EXPECT_TRUE(absl::StrContains(
      text, "millrace_coordinator_requests_total{outcome=\"completed\"} 1\n"));
  EXPECT_TRUE(absl::StrContains(
      text,
      "millrace_stage_kernel_info{stage=\"1\",name=\"stage-1\",kernel="
      "\"matmul\",compute=\"fast\",version=\"avx2\"} 1\n"))
      << text;
}

TEST(CheckListenAddress, WantsAKeyOffLoopback) {
  EXPECT_TRUE(CheckListenAddress("127.0.0.1", false, false).ok());
  EXPECT_TRUE(CheckListenAddress("0.0.0.0", true, false).ok());
  EXPECT_TRUE(CheckListenAddress("0.0.0.0", false, true).ok());
  EXPECT_TRUE(absl::StrContains(
      CheckListenAddress("0.0.0.0", false, false).message(), "--host"));
  EXPECT_FALSE(CheckListenAddress("example.com", false, false).ok());
}

}  // namespace
}  // namespace millrace::coordinator
