// A request reads the same whole and in small pieces, and the parser stays in
// its bounds. The first byte of the input is the size of the pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "coordinator/http/request_parser.h"

namespace millrace::coordinator {
namespace {

constexpr ParserLimits kLimits = {.header_bytes_max = 4096,
                                  .body_bytes_max = 4096};

struct Outcome {
  RequestParser::State state = RequestParser::State::kHead;
  HttpRequest request;
};

Outcome Read(absl::string_view text, size_t piece) {
  RequestParser parser(kLimits);
  std::string input;
  for (size_t at = 0; at < text.size(); at += piece) {
    const absl::string_view more = text.substr(at, piece);
    input.append(more.data(), more.size());
    while (parser.state() == RequestParser::State::kHead ||
           parser.state() == RequestParser::State::kBody) {
      const RequestParser::State before = parser.state();
      const size_t taken = parser.Feed(input);
      MILLRACE_CHECK(taken <= input.size());
      input.erase(0, taken);
      if (taken == 0 && parser.state() == before) {
        break;
      }
    }
  }
  MILLRACE_CHECK(parser.kept_bytes() <= kLimits.body_bytes_max);
  Outcome outcome{.state = parser.state(), .request = {}};
  outcome.request = parser.TakeRequest();
  return outcome;
}

void Try(absl::string_view text, size_t piece) {
  const Outcome whole = Read(text, std::max<size_t>(1, text.size()));
  const Outcome cut = Read(text, piece);
  // A head that is too long may be noticed before or after its first fault.
  if (whole.state != RequestParser::State::kDone) {
    MILLRACE_CHECK(cut.state != RequestParser::State::kDone);
    return;
  }
  MILLRACE_CHECK(cut.state == RequestParser::State::kDone);
  MILLRACE_CHECK(cut.request.body == whole.request.body);
  MILLRACE_CHECK(cut.request.path == whole.request.path);
  MILLRACE_CHECK(cut.request.headers.size() == whole.request.headers.size());
}

}  // namespace
}  // namespace millrace::coordinator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) {
    millrace::coordinator::Try(
        {reinterpret_cast<const char*>(data) + 1, size - 1},
        std::max<size_t>(1, data[0] % 64));
  }
  return 0;
}
