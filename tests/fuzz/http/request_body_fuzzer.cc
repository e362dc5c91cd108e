// Any body is validated or refused with a named field, and what passes lies in
// its bounds. Crashes, sanitizer findings and broken bounds are the failures.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"
#include "coordinator/api/api_error.h"
#include "coordinator/api/chat_request.h"
#include "coordinator/api/completion_request.h"

namespace millrace::coordinator {
namespace {

const ModelLimits kLimits = {.context = 4096, .vocab_size = 5000};

void CheckFields(const GenerationFields& fields) {
  MILLRACE_CHECK(fields.sampling.temperature >= 0 &&
                 fields.sampling.temperature <= 2);
  MILLRACE_CHECK(fields.sampling.top_p >= 0 && fields.sampling.top_p <= 1);
  MILLRACE_CHECK(fields.sampling.top_k >= 0);
  MILLRACE_CHECK(fields.n >= 1 && fields.n <= kSequencesMax);
  MILLRACE_CHECK(fields.stop.size() <= kStopStringsMax);
  for (const auto& stop : fields.stop) {
    MILLRACE_CHECK(!stop.empty());
  }
  for (const auto& entry : fields.sampling.logit_bias) {
    MILLRACE_CHECK(entry.token >= 0 && entry.token < kLimits.vocab_size);
    MILLRACE_CHECK(entry.bias >= -100 && entry.bias <= 100);
  }
  const auto tokens = TokensToGenerate(fields, kLimits, 4000, 96, "prompt");
  MILLRACE_CHECK(!tokens.ok() || (*tokens >= 0 && *tokens <= 96));
}

void CheckRefusal(const absl::Status& status) {
  const HttpResponse response = ErrorResponse(status);
  MILLRACE_CHECK(response.status == 400);
  MILLRACE_CHECK(ParseJson(response.body, "refusal").ok());
}

void Try(absl::string_view text) {
  const auto body = ParseJson(text, "body", {.bytes_max = 1 << 20});
  if (!body.ok()) {
    CheckRefusal(body.status());
    return;
  }
  const auto chat = ReadChatRequest(*body, kLimits);
  if (chat.ok()) {
    CheckFields(chat->fields);
    MILLRACE_CHECK(!chat->input.at("messages").as_array().empty());
  } else {
    CheckRefusal(chat.status());
  }
  const auto text_request = ReadCompletionRequest(*body, kLimits);
  if (text_request.ok()) {
    CheckFields(text_request->fields);
    MILLRACE_CHECK(!text_request->prompts.empty());
  } else {
    CheckRefusal(text_request.status());
  }
}

}  // namespace
}  // namespace millrace::coordinator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::coordinator::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
