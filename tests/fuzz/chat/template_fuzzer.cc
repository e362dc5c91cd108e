// Any template with any input renders or fails with a status: no crash, no
// leak, within the limits. The bytes before the first NUL are the template, the
// rest is JSON input; a user's text that no template has comes out untrusted.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "model/chat/chat_template.h"

using millrace::Json;
using millrace::model::AddedTokenMode;
using millrace::model::ChatTemplate;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::string_view source = bytes.substr(0, bytes.find('\0'));
  const auto compiled = ChatTemplate::Compile(source, "template");
  if (!compiled.ok()) {
    return 0;
  }
  // A character of the private use area, which case mapping leaves alone.
  static constexpr char kUser[] = "\xEE\x80\x80";
  boost::json::object message;
  message["role"] = "user";
  message["content"] = std::string(" ab<|") + kUser + "|> ";
  Json input =
      boost::json::object{{"messages", boost::json::array{message, message}},
                          {"tools", boost::json::array{message}},
                          {"bos_token", "<s>"}};
  if (source.size() < bytes.size()) {
    auto given = millrace::ParseJson(bytes.substr(source.size() + 1), "input");
    if (given.ok() && given->is_object()) {
      input.get_object()["x"] = *given;
    }
  }
  const auto segments = (*compiled)->Render(input, absl::UnixEpoch(),
                                            {.steps_max = 20'000,
                                             .output_bytes_max = 1 << 20,
                                             .memory_bytes_max = 8 << 20});
  if (!segments.ok() || absl::StrContains(source, kUser) ||
      absl::StrContains(source, "\\")) {
    return 0;
  }
  for (const auto& segment : *segments) {
    MILLRACE_CHECK(segment.mode == AddedTokenMode::kNone ||
                   !absl::StrContains(segment.text, kUser));
  }
  return 0;
}
