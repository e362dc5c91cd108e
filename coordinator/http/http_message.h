#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace millrace::coordinator {

struct HttpHeader {
  std::string name;
  std::string value;
};

// A request whose framing was valid. Everything in it comes from a client.
struct HttpRequest {
  std::string method;
  std::string path;       // begins with '/', or is "*"; still percent-encoded
  std::string query;      // without '?'
  int minor_version = 1;  // of HTTP/1
  std::vector<HttpHeader> headers;
  std::string body;
  std::string request_id;  // safe to send back: the client's, or a fresh one

  // The first field of that name in any case; empty when there is none.
  [[nodiscard]] absl::string_view Header(absl::string_view name) const;
  [[nodiscard]] bool Has(absl::string_view name) const;
};

// What a handler answers. Framing fields are the connection's business.
struct HttpResponse {
  int status = 200;
  std::string content_type = {};  // empty: no such field
  std::vector<HttpHeader> headers = {};
  std::string body = {};
  // Ends the connection after this answer.
  bool close = false;
};

// How the head of one answer is framed.
struct HeadFraming {
  bool chunked = false;     // no length known, HTTP/1.1
  bool with_length = true;  // Content-Length of `body_bytes`
  int64_t body_bytes = 0;
  bool close = false;
  absl::string_view request_id = {};
};

// Status line and fields up to and including the empty line. Field values with
// control characters are left out, so that nothing can split an answer.
std::string FormatHead(const HttpResponse& response, const HeadFraming& framing,
                       absl::Time now);

// One chunk of the chunked coding. `data` is not empty.
std::string FormatChunk(absl::string_view data);
inline constexpr absl::string_view kLastChunk = "0\r\n\r\n";

absl::string_view ReasonPhrase(int status);

// A client's X-Request-Id when it is 1 to 128 letters, digits or "-_.:", else
// empty.
std::string CleanRequestId(absl::string_view text);

}  // namespace millrace::coordinator
