#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::coordinator {

// A blocking client on a plain socket, so that a test decides about each byte.
// Every wait ends after 20 seconds with what has come by then.
class TestClient {
 public:
  // `url` as servers give it: http://127.0.0.1:PORT.
  explicit TestClient(const std::string& url, int receive_buffer = 0);
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  // False when the peer has closed.
  bool Send(absl::string_view bytes) const;
  // No more will be sent.
  void EndSending() const;
  void Close();

  // Reads until `text` has come or the peer has closed; everything read so far
  // and not yet taken.
  std::string ReadUntil(absl::string_view text);
  // One whole answer, by its Content-Length or chunked coding.
  std::string ReadAnswer();
  // Reads until the peer closes.
  std::string ReadToEnd();

 private:
  bool Fill();

  int socket_ = -1;
  std::string input_;
};

// A GET or, with a body, POST request of a keep-alive client.
std::string RequestText(absl::string_view path, absl::string_view body = "",
                        absl::string_view extra_fields = "");

int StatusOf(absl::string_view answer);
// Behind the head, chunked coding removed.
std::string BodyOf(absl::string_view answer);

}  // namespace millrace::coordinator
