#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "coordinator/http/http_message.h"

namespace millrace::coordinator {

// The answer to one request, as its handler sees it: either Send, or Start,
// then any number of Write, then End or Abort. Any thread; every call only
// posts to the connection's loop. What comes after the client is gone, and what
// breaks that order, is dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // A whole answer.
  virtual void Send(HttpResponse response) = 0;

  // An answer of unknown length, sent piece by piece. While nothing was written
  // for a while, `idle_filler` is sent (a comment of server-sent events; empty:
  // nothing).
  virtual void Start(HttpResponse head, std::string idle_filler) = 0;
  virtual void Write(std::string data) = 0;
  virtual void End() = 0;
  // Breaks the answer off: the client sees that it is not whole.
  virtual void Abort() = 0;

  // `gone` runs once, on the loop, when the client has closed, was cut off for
  // not reading, or the server stops; at once (posted) when that has happened
  // already. It does not run after the answer has ended. A client that closed
  // its sending side while this is set counts as gone: the two cannot be told
  // apart, and nobody else would stop the work.
  virtual void OnGone(std::function<void()> gone) = 0;
};

// Decides about requests. Called on the server's loop thread; must not block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Head read, body not yet. False refuses: `refusal` is then sent once the
  // body has passed by, and Handle is not called.
  virtual bool AcceptHead(const HttpRequest& head, HttpResponse& refusal) = 0;
  virtual void Handle(HttpRequest request,
                      std::shared_ptr<Exchange> exchange) = 0;
  // The body of refusals that the server makes itself: limits, framing.
  virtual HttpResponse Refusal(int status, absl::string_view why) = 0;
};

}  // namespace millrace::coordinator
