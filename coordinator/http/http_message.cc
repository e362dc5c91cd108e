#include "coordinator/http/http_message.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace millrace::coordinator {
namespace {

constexpr size_t kRequestIdBytesMax = 128;

constexpr std::array<std::pair<int, absl::string_view>, 21> kReasons = {{
    {100, "Continue"},
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

bool HasControl(absl::string_view text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) {
      return true;
    }
  }
  return false;
}

void AppendField(absl::string_view name, absl::string_view value,
                 std::string& out) {
  if (HasControl(name) || HasControl(value)) {
    return;
  }
  absl::StrAppend(&out, name, ": ", value, "\r\n");
}

}  // namespace

absl::string_view HttpRequest::Header(absl::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (absl::EqualsIgnoreCase(header.name, name)) {
      return header.value;
    }
  }
  return "";
}

bool HttpRequest::Has(absl::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (absl::EqualsIgnoreCase(header.name, name)) {
      return true;
    }
  }
  return false;
}

absl::string_view ReasonPhrase(int status) {
  for (const auto& [code, reason] : kReasons) {
    if (code == status) {
      return reason;
    }
  }
  return "Unknown";
}

std::string FormatHead(const HttpResponse& response, const HeadFraming& framing,
                       absl::Time now) {
  std::string out = absl::StrCat("HTTP/1.1 ", response.status, " ",
                                 ReasonPhrase(response.status), "\r\n");
  AppendField(
      "Date",
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
      out);
  AppendField("X-Request-Id", framing.request_id, out);
  if (!response.content_type.empty()) {
    AppendField("Content-Type", response.content_type, out);
  }
  for (const HttpHeader& header : response.headers) {
    AppendField(header.name, header.value, out);
  }
  if (framing.chunked) {
    AppendField("Transfer-Encoding", "chunked", out);
  } else if (framing.with_length && response.status != 204) {
    AppendField("Content-Length", absl::StrCat(framing.body_bytes), out);
  }
  AppendField("Connection", framing.close ? "close" : "keep-alive", out);
  out.append("\r\n");
  return out;
}

std::string FormatChunk(absl::string_view data) {
  return absl::StrCat(absl::Hex(data.size()), "\r\n", data, "\r\n");
}

std::string CleanRequestId(absl::string_view text) {
  if (text.empty() || text.size() > kRequestIdBytesMax) {
    return "";
  }
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (!absl::ascii_isalnum(byte) &&
        absl::string_view("-_.:").find(letter) == absl::string_view::npos) {
      return "";
    }
  }
  return std::string(text);
}

}  // namespace millrace::coordinator
