// A value of the wrong type or out of range is refused and its field named;
// neutral and border values pass; null means not given. Provoked by one bad
// value at a time in a request that is good otherwise.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "coordinator/api/api_error.h"
#include "coordinator/api/chat_request.h"
#include "coordinator/api/completion_request.h"
#include "coordinator/api/key_store.h"
#include "coordinator/engine/engine.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

const ModelLimits kLimits = {
    .context = 100, .vocab_size = 5000, .defaults = {}};
constexpr char kMessages[] = R"("messages":[{"role":"user","content":"Hi"}])";

Json Parse(absl::string_view text) {
  auto json = ParseJson(text, "test");
  EXPECT_TRUE(json.ok()) << text << json.status();
  return json.ok() ? *std::move(json) : Json();
}

// The param of the refusal of a chat request with these further fields; "-"
// when it is accepted.
std::string ChatParam(absl::string_view fields) {
  const auto request =
      ReadChatRequest(Parse(absl::StrCat("{", fields, "}")), kLimits);
  if (request.ok()) {
    return "-";
  }
  const ApiError error = ApiErrorFrom(request.status());
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.type, "invalid_request_error");
  return error.param;
}

std::string WithMessages(absl::string_view fields) {
  return ChatParam(absl::StrCat(kMessages, ",", fields));
}

std::string TextParam(absl::string_view fields) {
  const auto request =
      ReadCompletionRequest(Parse(absl::StrCat("{", fields, "}")), kLimits);
  return request.ok() ? "-" : ApiErrorFrom(request.status()).param;
}

TEST(ChatRequest, NamesTheFieldOfABadValue) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"temperature", {"\"hot\"", "[]", "{}", "true", "-0.1", "2.1", "1e999"}},
      {"top_p", {"\"much\"", "[0.5]", "-0.1", "1.1", "false"}},
      {"top_k",
       {"\"many\"", "[1]", "1.5", "-5", "true", "9223372036854775808"}},
      {"min_p", {"\"low\"", "-0.1", "1.1", "{}"}},
      {"max_tokens", {"0", "-1", "2.5", "\"many\"", "true", "1e40"}},
      {"max_completion_tokens", {"0", "-1", "2.5", "[]"}},
      {"seed", {"\"lucky\"", "[1]", "1.5", "true", "18446744073709551616"}},
      {"n", {"0", "-1", "129", "\"two\"", "1.5", "1000000", "false"}},
      {"stop",
       {"5", "{\"a\":1}", "[5]", "[null]", "true", "\"\"", "[\"a\",\"\"]",
        "[\"1\",\"2\",\"3\",\"4\",\"5\"]"}},
      {"stream", {"\"yes\"", "5", "[]"}},
      {"presence_penalty", {"\"much\"", "-2.1", "2.1", "true"}},
      {"frequency_penalty", {"[]", "-2.1", "2.1"}},
      {"repetition_penalty", {"0", "-1", "100", "\"x\""}},
      {"logit_bias",
       {"[1]", "{\"a\":1}", "{\"5000\":1}", "{\"-1\":1}", "{\"1\":101}",
        "{\"1\":\"x\"}", "{\"1\":1e999}", "{\"+1\":0}", "{\"1\":0,\"01\":0}"}},
      {"logprobs", {"\"yes\"", "5"}},
      {"top_logprobs", {"2", "-1", "21"}},
      {"stop_token_ids", {"5", "[-1]", "[5000]", "[1.5]", "[\"a\"]"}},
      {"ignore_eos", {"1"}},
      {"skip_special_tokens", {"\"no\""}},
      {"add_generation_prompt", {"0"}},
      {"chat_template_kwargs", {"[]", "{\"messages\":[]}"}},
      {"reasoning_effort", {"\"banana\"", "5"}},
      {"user", {"5"}},
      {"min_tokens", {"1", "-1", "\"x\""}},
      {"tools", {"[{}]", "\"x\"", "{}"}},
      {"tool_choice", {"\"required\"", "{}"}},
      {"response_format", {"{\"type\":\"json_object\"}", "{}"}},
      {"modalities", {"[\"audio\"]", "5"}},
      {"stream_options", {"{\"include_usage\":true}"}},
  };
  for (const auto& [name, values] : bad) {
    for (const std::string& value : values) {
      EXPECT_EQ(WithMessages(absl::StrCat("\"", name, "\":", value)), name)
          << value;
    }
  }
  EXPECT_EQ(WithMessages(R"("stream":true,"stream_options":5)"),
            "stream_options");
  EXPECT_EQ(
      WithMessages(R"("stream":true,"stream_options":{"include_usage":5})"),
      "stream_options.include_usage");
}

TEST(ChatRequest, AcceptsBordersNeutralValuesAndNulls) {
  for (const char* fields :
       {R"("temperature":0)",
        R"("temperature":2)",
        R"("top_p":1)",
        R"("top_p":0)",
        R"("top_k":-1)",
        R"("top_k":0)",
        R"("min_p":1)",
        R"("presence_penalty":-2)",
        R"("seed":-9223372036854775808)",
        R"("seed":18446744073709551615)",
        R"("n":128)",
        R"("stop":[])",
        R"("stop":"x")",
        R"("logit_bias":{})",
        R"("max_tokens":16.0)",
        R"("logprobs":true,"top_logprobs":20)",
        R"("tools":[])",
        R"("tool_choice":"none")",
        R"("response_format":{"type":"text"})",
        R"("modalities":["text"])",
        R"("min_tokens":0)",
        R"("stream":true,"stream_options":{})",
        R"("unknown":{"a":[1e999]})",
        R"("temperature":null,"n":null,"stop":null,"seed":null)",
        R"("tools":null,"logit_bias":null,"stream_options":null)"}) {
    EXPECT_EQ(WithMessages(fields), "-") << fields;
  }
}

TEST(ChatRequest, NamesTheMessageThatIsBad) {
  EXPECT_EQ(ChatParam(R"("x":1)"), "messages");
  for (const char* messages : {"[]", "null", "\"Hi\"", "{}", "5"}) {
    EXPECT_EQ(ChatParam(absl::StrCat("\"messages\":", messages)), "messages");
  }
  const auto message = [](absl::string_view text) {
    return ChatParam(absl::StrCat("\"messages\":[", text, "]"));
  };
  EXPECT_EQ(message("5"), "messages[0]");
  EXPECT_EQ(message(R"({"content":"a"})"), "messages[0].role");
  EXPECT_EQ(message(R"({"role":"wizard","content":"a"})"), "messages[0].role");
  EXPECT_EQ(message(R"({"role":"user"})"), "messages[0].content");
  EXPECT_EQ(message(R"({"role":"user","content":5})"), "messages[0].content");
  EXPECT_EQ(message(R"({"role":"user","content":[]})"), "messages[0].content");
  EXPECT_EQ(message(R"({"role":"user","content":["a"]})"),
            "messages[0].content[0]");
  EXPECT_EQ(message(R"({"role":"user","content":[{"text":"a"}]})"),
            "messages[0].content[0].type");
  EXPECT_EQ(message(R"({"role":"user","content":[{"type":"text"}]})"),
            "messages[0].content[0].text");
  EXPECT_EQ(message(R"({"role":"assistant","tool_calls":[{}]})"),
            "messages[0].tool_calls");
  EXPECT_EQ(message(R"({"role":"assistant","content":null})"), "-");
}

// With nothing to cut behind, the prompt would end in what the user wrote, and
// the model would go on in the user's name.
TEST(ChatRequest, ContinuesOnlyAMessageWithText) {
  const auto continued = [](absl::string_view last) {
    return ChatParam(absl::StrCat(
        R"("messages":[{"role":"user","content":"Hi"},)", last,
        R"(],"continue_final_message":true,"add_generation_prompt":false)"));
  };
  EXPECT_EQ(continued(R"({"role":"assistant","content":"So"})"), "-");
  for (const char* empty :
       {R"("")", R"(" \n")", "null", R"([{"type":"text","text":""}])"}) {
    EXPECT_EQ(continued(absl::StrCat(R"({"role":"assistant","content":)", empty,
                                     "}")),
              "continue_final_message");
  }
  EXPECT_EQ(continued(R"({"role":"user","content":"So"})"),
            "continue_final_message");
}

TEST(ChatRequest, MakesSystemOfDeveloperAndTextOfParts) {
  const auto request =
      ReadChatRequest(Parse(R"({"messages":[{"role":"developer","content":"a"},
               {"role":"user","content":[{"type":"text","text":"b"},
                                         {"type":"text","text":"c"}]}]})"),
                      kLimits);
  ASSERT_TRUE(request.ok());
  const Json& messages = request->input.at("messages");
  EXPECT_EQ(messages.at(0).at("role"), "system");
  EXPECT_EQ(messages.at(1).at("content"), "b\nc");
}

TEST(ChatRequest, TakesDefaultsFromTheModel) {
  ModelLimits limits = kLimits;
  limits.defaults = {.temperature = 0.5, .top_k = 7};
  const Json body = Parse(absl::StrCat("{", kMessages, ",\"top_k\":3}"));
  const auto request = ReadChatRequest(body, limits);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->fields.sampling.temperature, 0.5F);
  EXPECT_EQ(request->fields.sampling.top_k, 3);
  EXPECT_EQ(ReadChatRequest(body, kLimits)->fields.sampling.temperature, 1.0F);
}

TEST(CompletionRequest, ReadsEveryShapeOfPrompt) {
  EXPECT_EQ(TextParam(R"("prompt":"a")"), "-");
  EXPECT_EQ(TextParam(R"("prompt":["a","b"])"), "-");
  EXPECT_EQ(TextParam(R"("prompt":[1,2,4999])"), "-");
  EXPECT_EQ(TextParam(R"("prompt":[[1],[2,3]])"), "-");
  for (const char* prompt :
       {"5", "{}", "[]", "[null]", "[\"a\",5]", "[1.5]", "[[]]", "[[\"a\"]]",
        "true", "null", "[5000]", "[-1]", "[1,1099511627776]", "[1,\"a\"]"}) {
    EXPECT_EQ(TextParam(absl::StrCat("\"prompt\":", prompt)), "prompt")
        << prompt;
  }
}

TEST(CompletionRequest, KnowsTheFieldsOfItsOwn) {
  EXPECT_EQ(TextParam(R"("prompt":"a","max_tokens":0)"), "max_tokens");
  EXPECT_EQ(TextParam(R"("prompt":"a","max_tokens":0,"echo":true)"), "-");
  EXPECT_EQ(TextParam(R"("prompt":"a","suffix":"b")"), "suffix");
  EXPECT_EQ(TextParam(R"("prompt":"a","logprobs":true)"), "logprobs");
  EXPECT_EQ(TextParam(R"("prompt":"a","logprobs":21)"), "logprobs");
  EXPECT_EQ(TextParam(R"("prompt":"a","best_of":2)"), "best_of");
  EXPECT_EQ(TextParam(R"("prompt":"a","best_of":2,"n":2)"), "-");
  EXPECT_EQ(TextParam(R"("prompt":["a","b"],"n":65)"), "n");
}

TEST(TokensToGenerate, SaysTheLongestThatFits) {
  GenerationFields fields;
  EXPECT_EQ(*TokensToGenerate(fields, kLimits, 60, 16, "prompt"), 16);
  EXPECT_EQ(*TokensToGenerate(fields, kLimits, 90, 16, "prompt"), 10);
  fields.tokens_max = 40;
  EXPECT_EQ(*TokensToGenerate(fields, kLimits, 60, 16, "prompt"), 40);
  fields.tokens_max = 41;
  const ApiError over = ApiErrorFrom(
      TokensToGenerate(fields, kLimits, 60, 16, "prompt").status());
  EXPECT_EQ(over.param, "max_tokens");
  EXPECT_EQ(over.code, "context_length_exceeded");
  EXPECT_TRUE(absl::StrContains(over.message, " 40 "));
  const ApiError full =
      ApiErrorFrom(TokensToGenerate({}, kLimits, 100, 16, "messages").status());
  EXPECT_EQ(full.param, "messages");
  EXPECT_EQ(full.code, "context_length_exceeded");
}

TEST(ApiErrorFrom, ChoosesTheStatusByCode) {
  EXPECT_EQ(ApiErrorFrom(ModelNotFound("x", "y")).status, 404);
  EXPECT_EQ(ApiErrorFrom(ModelNotFound("x", "y")).code, "model_not_found");
  const ApiError full = ApiErrorFrom(QueueFull("is full", 7));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.retry_after_seconds, 7);
  EXPECT_EQ(ApiErrorFrom(absl::UnavailableError("x")).status, 503);
  EXPECT_EQ(ApiErrorFrom(absl::InternalError("x")).status, 500);
  const std::string body = ErrorResponse(absl::InternalError("x")).body;
  for (const char* key : {"message", "type", "param", "code"}) {
    EXPECT_TRUE(absl::StrContains(body, absl::StrCat("\"", key, "\":")));
  }
}

TEST(KeyStore, KnowsItsKeysInEitherForm) {
  // SHA-256 of "abc", FIPS 180-4, example B.1.
  const auto keys = KeyStore::FromText(
      "# people\n  sk-one  \n\nsha256:ba7816bf8f01cfea414140de5dae2223b00361a3"
      "96177a9cb410ff61f20015ad\n",
      "keys");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 2U);
  EXPECT_TRUE(keys->Authorizes("Bearer sk-one"));
  EXPECT_TRUE(keys->Authorizes("bEARER  abc "));
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearersk-one", "sk-one",
                          "Basic sk-one", "Bearer sk-two", "Bearer sk-one x"}) {
    EXPECT_FALSE(keys->Authorizes(bad)) << bad;
  }
  EXPECT_TRUE(KeyStore().Authorizes(""));
  EXPECT_FALSE(KeyStore::FromText("# none\n", "keys").ok());
  EXPECT_FALSE(KeyStore::FromText("a b\n", "keys").ok());
  EXPECT_FALSE(KeyStore::FromText("sha256:12\n", "keys").ok());
  // A digit too many, or one cut off, is no key that is nearly right.
  const std::string digest(64, 'a');
  EXPECT_TRUE(KeyStore::FromText("sha256:" + digest, "keys").ok());
  EXPECT_FALSE(KeyStore::FromText("sha256:" + digest + "a", "keys").ok());
  EXPECT_FALSE(KeyStore::FromText("sha256:" + digest.substr(1), "keys").ok());
}

}  // namespace
}  // namespace millrace::coordinator
