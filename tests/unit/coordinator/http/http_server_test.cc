// One client never harms another, and no answer is lost or out of order.
// Provoked by clients that crawl, stay silent, do not read, vanish and pipeline
// against a server with short deadlines and few connections.

#include "coordinator/http/http_server.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "gtest/gtest.h"
#include "tests/unit/coordinator/http/test_client.h"

namespace millrace::coordinator {
namespace {

// /echo answers with the body, /hold only when told, /stream as told.
class TestHandler final : public HttpHandler {
 public:
  bool AcceptHead(const HttpRequest& head, HttpResponse& refusal) override {
    if (head.path == "/refused") {
      refusal.status = 403;
      refusal.body = "refused";
      return false;
    }
    return true;
  }

  void Handle(HttpRequest request,
              std::shared_ptr<Exchange> exchange) override {
    if (request.path == "/hold") {
      exchange->OnGone([this] {
        MutexLock lock(mutex_);
        ++gone_;
        changed_.NotifyAll();
      });
      MutexLock lock(mutex_);
      held_.push_back(std::move(exchange));
      changed_.NotifyAll();
      return;
    }
    HttpResponse response;
    response.content_type = "text/plain";
    response.body = absl::StrCat(request.path, "|", request.body);
    exchange->Send(std::move(response));
  }

  HttpResponse Refusal(int status, absl::string_view why) override {
    HttpResponse response;
    response.status = status;
    response.body = std::string(why);
    return response;
  }

  // The next exchange of /hold.
  std::shared_ptr<Exchange> Next() {
    MutexLock lock(mutex_);
    while (held_.size() <= taken_) {
      changed_.Wait(mutex_);
    }
    return held_[taken_++];
  }
  void AwaitGone(int count) {
    MutexLock lock(mutex_);
    while (gone_ < count) {
      changed_.Wait(mutex_);
    }
  }
  int gone() {
    MutexLock lock(mutex_);
    return gone_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Exchange>> held_ ABSL_GUARDED_BY(mutex_);
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int gone_ ABSL_GUARDED_BY(mutex_) = 0;
};

class HttpServerTest : public testing::Test {
 protected:
  void Serve(HttpLimits limits = {}) {
    limits.sweep_every = absl::Milliseconds(10);
    HttpServer::Options options;
    options.limits = limits;
    options.clock = &clock_;
    auto server = HttpServer::Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Serve(handler_);
  }
  void TearDown() override {
    if (server_ != nullptr) {
      server_->Stop();
    }
  }

  SystemClock clock_;
  TestHandler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Serve();
  TestClient client(server_->url());
  client.Send(RequestText("/a") + RequestText("/hold") +
              RequestText("/b", "body") + RequestText("/c"));
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/a|");
  HttpResponse late;
  late.body = "late";
  handler_.Next()->Send(std::move(late));
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "late");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/b|body");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/c|");
}

TEST_F(HttpServerTest, KeepsTheConnectionAfterARefusal) {
  Serve();
  TestClient client(server_->url());
  client.Send(RequestText("/refused", std::string(100000, 'x')) +
              RequestText("/a"));
  EXPECT_EQ(StatusOf(client.ReadAnswer()), 403);
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/a|");
}

TEST_F(HttpServerTest, AsksForTheBodyWhenExpected) {
  Serve();
  TestClient client(server_->url());
  client.Send(
      "POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ab");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/e|ab");
  client.Send(
      "POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(StatusOf(client.ReadAnswer()), 403);
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, SpeaksHttp10AndHead) {
  Serve();
  TestClient old(server_->url());
  old.Send("GET /a HTTP/1.0\r\n\r\n");
  const std::string answer = old.ReadToEnd();
  EXPECT_TRUE(absl::StrContains(answer, "Connection: close"));
  EXPECT_EQ(BodyOf(answer), "/a|");
  TestClient client(server_->url());
  client.Send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + RequestText("/b"));
  const std::string head = client.ReadUntil("/b|");
  EXPECT_TRUE(absl::StrContains(head, "Content-Length: 3\r\n"));
  EXPECT_FALSE(absl::StrContains(head, "/a|"));
}

TEST_F(HttpServerTest, CutsOffHeadsAndBodiesThatCrawl) {
  HttpLimits limits;
  limits.head = absl::Milliseconds(60);
  limits.body = absl::Milliseconds(60);
  Serve(limits);
  TestClient head(server_->url());
  head.Send("GET / HTTP/1.1\r\nX: a");
  EXPECT_EQ(StatusOf(head.ReadToEnd()), 408);
  TestClient body(server_->url());
  body.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc");
  EXPECT_EQ(StatusOf(body.ReadToEnd()), 408);
  TestClient silent(server_->url());
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST_F(HttpServerTest, RefusesOversizeAndGarbageThenCloses) {
  Serve();
  TestClient big(server_->url());
  big.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000000\r\n\r\n");
  EXPECT_EQ(StatusOf(big.ReadToEnd()), 413);
  TestClient wide(server_->url());
  wide.Send(absl::StrCat("GET / HTTP/1.1\r\nHost: h\r\nX: ",
                         std::string(200000, 'a'), "\r\n\r\n"));
  EXPECT_EQ(StatusOf(wide.ReadToEnd()), 431);
  TestClient garbage(server_->url());
  garbage.Send("hello\r\n\r\n");
  EXPECT_EQ(StatusOf(garbage.ReadToEnd()), 400);
}

TEST_F(HttpServerTest, SilentClientsKeepNobodyOut) {
  HttpLimits limits;
  limits.connections_max = 4;
  Serve(limits);
  std::vector<std::unique_ptr<TestClient>> silent;
  for (int i = 0; i < 12; ++i) {
    silent.push_back(std::make_unique<TestClient>(server_->url()));
  }
  TestClient client(server_->url());
  client.Send(RequestText("/a"));
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/a|");
  EXPECT_LE(server_->num_connections(), 4);
}

TEST_F(HttpServerTest, BoundsBodiesOfAllConnectionsTogether) {
  HttpLimits limits;
  limits.bodies_bytes_max = 1000;
  Serve(limits);
  TestClient first(server_->url());
  first.Send(RequestText("/hold", std::string(900, 'a')));
  const auto held = handler_.Next();
  TestClient second(server_->url());
  second.Send(RequestText("/b", std::string(900, 'b')));
  EXPECT_EQ(StatusOf(second.ReadToEnd()), 503);
  held->Send({});
  EXPECT_EQ(StatusOf(first.ReadAnswer()), 200);
  TestClient third(server_->url());
  third.Send(RequestText("/c", std::string(900, 'c')));
  EXPECT_EQ(StatusOf(third.ReadAnswer()), 200);
}

TEST_F(HttpServerTest, TellsWhenAClientIsGoneBeforeItsAnswer) {
  Serve();
  TestClient client(server_->url());
  client.Send(RequestText("/hold"));
  const auto exchange = handler_.Next();
  client.Close();
  handler_.AwaitGone(1);
  exchange->Send({});  // dropped
  TestClient half(server_->url());
  half.Send(RequestText("/hold"));
  handler_.Next();
  half.EndSending();
  handler_.AwaitGone(2);
  EXPECT_EQ(half.ReadToEnd(), "");
}

TEST_F(HttpServerTest, AnswersAHalfClosedClientThatIsServedAtOnce) {
  Serve();
  TestClient client(server_->url());
  client.Send(RequestText("/a") + RequestText("/b"));
  client.EndSending();
  const std::string answers = client.ReadToEnd();
  EXPECT_TRUE(absl::StrContains(answers, "/a|"));
  EXPECT_TRUE(absl::StrContains(answers, "/b|"));
}

TEST_F(HttpServerTest, StreamsAndUsesTheConnectionAgain) {
  Serve();
  TestClient client(server_->url());
  client.Send(RequestText("/hold") + RequestText("/a"));
  const auto exchange = handler_.Next();
  exchange->Start({}, "");
  exchange->Write("one ");
  client.ReadUntil("one ");
  exchange->Write("two");
  exchange->End();
  exchange->Write("dropped");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "one two");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "/a|");
  EXPECT_EQ(handler_.gone(), 0);
}

TEST_F(HttpServerTest, FillsTheSilenceOfAStream) {
  HttpLimits limits;
  limits.filler_after = absl::Milliseconds(20);
  Serve(limits);
  TestClient client(server_->url());
  client.Send(RequestText("/hold"));
  const auto exchange = handler_.Next();
  exchange->Start({}, ": still here\n\n");
  EXPECT_TRUE(absl::StrContains(client.ReadUntil("here"), ": still here"));
  exchange->End();
}

TEST_F(HttpServerTest, CutsOffAReaderThatFallsTooFarBehind) {
  HttpLimits limits;
  limits.output_bytes_max = 64 << 10;
  Serve(limits);
  TestClient slow(server_->url(), 2048);
  slow.Send(RequestText("/hold"));
  const auto exchange = handler_.Next();
  exchange->Start({}, "");
  for (int i = 0; i < 4000; ++i) {
    exchange->Write(std::string(4096, 'x'));
  }
  handler_.AwaitGone(1);
  TestClient other(server_->url());
  other.Send(RequestText("/a"));
  EXPECT_EQ(BodyOf(other.ReadAnswer()), "/a|");
}

TEST_F(HttpServerTest, CutsOffAReaderWithoutProgress) {
  HttpLimits limits;
  limits.write_stall = absl::Milliseconds(50);
  Serve(limits);
  TestClient slow(server_->url(), 2048);
  slow.Send(RequestText("/hold"));
  const auto exchange = handler_.Next();
  HttpResponse response;
  response.body = std::string(16 << 20, 'x');
  exchange->Send(std::move(response));
  handler_.AwaitGone(1);
}

TEST_F(HttpServerTest, DrainsWhatRunsAndClosesWhatIsIdle) {
  Serve();
  TestClient idle(server_->url());
  idle.Send(RequestText("/a"));
  EXPECT_EQ(StatusOf(idle.ReadAnswer()), 200);
  TestClient busy(server_->url());
  busy.Send(RequestText("/hold"));
  const auto exchange = handler_.Next();
  server_->Drain(absl::ZeroDuration());
  EXPECT_EQ(idle.ReadToEnd(), "");
  HttpResponse response;
  response.body = "whole";
  exchange->Send(std::move(response));
  const std::string answer = busy.ReadToEnd();
  EXPECT_EQ(BodyOf(answer), "whole");
  EXPECT_TRUE(absl::StrContains(answer, "Connection: close"));
  busy.Close();
  server_->Drain(absl::Seconds(20));
  EXPECT_EQ(server_->num_connections(), 0);
}

TEST_F(HttpServerTest, StopsWithRequestsInFlight) {
  Serve();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TestClient>(server_->url()));
    clients.back()->Send(RequestText("/hold"));
    handler_.Next();
  }
  server_->Stop();
  EXPECT_EQ(handler_.gone(), 8);
  EXPECT_EQ(clients[0]->ReadToEnd(), "");
}

TEST(HttpServerAddress, NamesWhatCannotBeUsed) {
  SystemClock clock;
  HttpServer::Options options;
  options.clock = &clock;
  auto first = HttpServer::Create(options);
  ASSERT_TRUE(first.ok());
  const std::string url = (*first)->url();
  options.port = std::stoi(url.substr(url.rfind(':') + 1));
  const auto second = HttpServer::Create(options);
  EXPECT_TRUE(absl::StrContains(second.status().message(), "--port"));
  options.host = "no.such.host.invalid";
  EXPECT_TRUE(absl::StrContains(HttpServer::Create(options).status().message(),
                                "--host"));
  EXPECT_TRUE(IsLoopback("127.0.0.1") && IsLoopback("::1") &&
              IsLoopback("localhost") && IsLoopback("127.9.9.9"));
  EXPECT_FALSE(IsLoopback("0.0.0.0") || IsLoopback("::") ||
               IsLoopback("10.0.0.1") || IsLoopback("example.com"));
}

}  // namespace
}  // namespace millrace::coordinator
