// A request reads the same however it is cut; whatever two parsers could read
// in two ways is refused. Provoked by cutting valid requests at every byte and
// by the framings that request smuggling uses.

#include "coordinator/http/request_parser.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

using State = RequestParser::State;

struct Parsed {
  State state = State::kHead;
  HttpRequest request = {};
  int status = 0;
  size_t used = 0;
};

// Feeds pieces of `piece` bytes as a connection does: what is not taken comes
// again with more behind it.
Parsed Parse(absl::string_view text, size_t piece,
             const ParserLimits& limits = {}) {
  RequestParser parser(limits);
  std::string input;
  size_t used = 0;
  for (size_t at = 0; at < text.size(); at += piece) {
    input += std::string(text.substr(at, piece));
    while (parser.state() == State::kHead || parser.state() == State::kBody) {
      const State before = parser.state();
      const size_t taken = parser.Feed(input);
      used += taken;
      input.erase(0, taken);
      if (taken == 0 && parser.state() == before) {
        break;
      }
    }
  }
  Parsed out{
      .state = parser.state(), .status = parser.error_status(), .used = used};
  out.request = parser.TakeRequest();
  return out;
}

int StatusFor(absl::string_view text) {
  const Parsed parsed = Parse(text, text.size());
  return parsed.state == State::kFailed ? parsed.status : 0;
}

TEST(RequestParser, ReadsTheSameHoweverItIsCut) {
  const std::string length =
      "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-A:  b \r\nContent-Length: "
      "5\r\n\r\nhello";
  const std::string chunks =
      "\r\nPOST /v1/x?a=b HTTP/1.1\r\nhost: h\r\nx-a: b\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2;q=\"1 2\"\r\nhe\r\n3\r\nllo\r\n0\r\nX-A: "
      "trailer\r\n\r\n";
  for (const std::string& text : {length, chunks}) {
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      const Parsed parsed = Parse(text, piece);
      ASSERT_EQ(parsed.state, State::kDone) << piece;
      EXPECT_EQ(parsed.request.body, "hello");
      EXPECT_EQ(parsed.request.path, "/v1/x");
      EXPECT_EQ(parsed.request.query, "a=b");
      EXPECT_EQ(parsed.request.Header("X-a"), "b");
      EXPECT_EQ(parsed.used, text.size());
    }
  }
}

TEST(RequestParser, LeavesTheNextRequestAlone) {
  const std::string one = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_EQ(Parse(one + one, 2 * one.size()).used, one.size());
  const std::string body =
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
  EXPECT_EQ(Parse(body + one, body.size() + one.size()).used, body.size());
}

TEST(RequestParser, TakesAbsoluteTargets) {
  const auto path = [](absl::string_view target) {
    const Parsed parsed = Parse(
        absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: h\r\n\r\n"), 4096);
    return parsed.state == State::kDone
               ? absl::StrCat(parsed.request.path, "|", parsed.request.query)
               : "refused";
  };
  EXPECT_EQ(path("http://h:1/a/b?c"), "/a/b|c");
  EXPECT_EQ(path("HTTP://h"), "/|");
  EXPECT_EQ(path("http://h?x"), "/|x");
  EXPECT_EQ(path("*"), "*|");
  EXPECT_EQ(path("a/b"), "refused");
  EXPECT_EQ(path("ftp://h/a"), "refused");
}

TEST(RequestParser, RefusesTwoWaysToFrameABody) {
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::string end = "\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(
      StatusFor(post + "Content-Length: 5\r\nTransfer-Encoding: chunked" + end),
      400);
  EXPECT_EQ(
      StatusFor(post + "Transfer-Encoding: chunked\r\nContent-Length: 5" + end),
      400);
  EXPECT_EQ(StatusFor(post + "Content-Length: 5\r\nContent-Length: 6" + end),
            400);
  EXPECT_EQ(StatusFor(post + "Content-Length: 5, 6" + end), 400);
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, gzip",
                             "xchunked", "identity", "chunked, chunked"}) {
    EXPECT_GE(StatusFor(post + "Transfer-Encoding: " + coding + end), 400)
        << coding;
  }
  EXPECT_GE(StatusFor(post +
                      "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
                      "chunked" +
                      end),
            400);
  EXPECT_EQ(StatusFor("POST / HTTP/1.0\r\nTransfer-Encoding: chunked" + end),
            400);
}

TEST(RequestParser, RefusesWhatIsNoLength) {
  for (const char* value :
       {"-1", "+5", "0x10", "5 5", "abc", "", "1e3", "18446744073709551617"}) {
    const int status = StatusFor(absl::StrCat(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ", value, "\r\n\r\n{}"));
    EXPECT_TRUE(status == 400 || status == 413) << value << " " << status;
  }
}

TEST(RequestParser, NeedsOneHost) {
  EXPECT_EQ(StatusFor("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusFor("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(StatusFor("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusFor("GET / HTTP/9.9\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(StatusFor("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"), 400);
}

TEST(RequestParser, BoundsHeadBodyAndChunkHeads) {
  const ParserLimits limits{.header_bytes_max = 512, .body_bytes_max = 16};
  const std::string long_head = absl::StrCat(
      "GET / HTTP/1.1\r\nHost: h\r\nX: ", std::string(4096, 'a'), "\r\n\r\n");
  for (const size_t piece : {size_t{1}, size_t{100}, long_head.size()}) {
    EXPECT_EQ(Parse(long_head, piece, limits).status, 431);
  }
  const std::string announced =
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n";
  EXPECT_EQ(Parse(announced, 64, limits).status, 413);
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(
      Parse(chunked + "8\r\n12345678\r\n9\r\n123456789\r\n0\r\n\r\n", 7, limits)
          .status,
      413);
  EXPECT_EQ(
      Parse(absl::StrCat(chunked, "1;", std::string(4096, 'x')), 50, limits)
          .status,
      431);
}

TEST(RequestParser, KeepsNothingOfADiscardedBody) {
  RequestParser parser({});
  const std::string head =
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n";
  EXPECT_EQ(parser.Feed(head), head.size());
  parser.DiscardBody();
  EXPECT_EQ(parser.Feed("abc"), 3U);
  EXPECT_EQ(parser.Feed("defG"), 3U);
  EXPECT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.body_bytes(), 6);
  EXPECT_EQ(parser.kept_bytes(), 0);
}

}  // namespace
}  // namespace millrace::coordinator
