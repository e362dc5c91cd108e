// Nothing a client sends can add a line to an answer's head. Provoked by
// request ids and field values with line breaks.

#include "coordinator/http/http_message.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

TEST(HttpMessage, FramesWholeAndChunkedAnswers) {
  HttpResponse response;
  response.status = 404;
  response.content_type = "application/json";
  const std::string whole = FormatHead(
      response, {.body_bytes = 12, .request_id = "id-1"}, absl::UnixEpoch());
  EXPECT_EQ(whole,
            "HTTP/1.1 404 Not Found\r\nDate: Thu, 01 Jan 1970 00:00:00 "
            "GMT\r\nX-Request-Id: id-1\r\nContent-Type: "
            "application/json\r\nContent-Length: 12\r\nConnection: "
            "keep-alive\r\n\r\n");
  const std::string chunked =
      FormatHead(response, {.chunked = true, .close = true}, absl::UnixEpoch());
  EXPECT_TRUE(absl::StrContains(chunked, "Transfer-Encoding: chunked\r\n"));
  EXPECT_FALSE(absl::StrContains(chunked, "Content-Length"));
  EXPECT_TRUE(absl::StrContains(chunked, "Connection: close\r\n"));
  EXPECT_EQ(FormatChunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

TEST(HttpMessage, LeavesOutFieldsThatWouldSplitTheHead) {
  HttpResponse response;
  response.headers = {{"A", "b\r\nC: d"}, {"E", "f"}};
  const std::string head = FormatHead(response, {}, absl::UnixEpoch());
  EXPECT_FALSE(absl::StrContains(head, "C: d"));
  EXPECT_TRUE(absl::StrContains(head, "E: f"));
}

TEST(HttpMessage, TakesOnlyHarmlessRequestIds) {
  EXPECT_EQ(CleanRequestId("check-7f3a_B.c:d"), "check-7f3a_B.c:d");
  for (const char* bad : {"", "a b", "a\r\nb", "a\"b", "a/b", "\xC3\xA4"}) {
    EXPECT_EQ(CleanRequestId(bad), "") << bad;
  }
  EXPECT_EQ(CleanRequestId(std::string(129, 'a')), "");
}

}  // namespace
}  // namespace millrace::coordinator
