#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "boost/asio/buffer.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/system/error_code.hpp"

namespace millrace::coordinator {

// A connected socket, plain or under TLS, with one read and one write in
// flight at most. Loop thread only. Completions never run inside the call that
// asked for them; Close completes what is in flight with an error.
class ByteStream {
 public:
  using Done = std::function<void(const boost::system::error_code&, size_t)>;

  virtual ~ByteStream() = default;
  // Before anything else; completes with 0 bytes.
  virtual void Handshake(Done done) = 0;
  // Some bytes, at least one.
  virtual void Read(boost::asio::mutable_buffer into, Done done) = 0;
  // All of `from`.
  virtual void Write(boost::asio::const_buffer from, Done done) = 0;
  // No more bytes will be sent; the peer may still send.
  virtual void EndSending() = 0;
  virtual void Close() = 0;
};

std::unique_ptr<ByteStream> MakePlainStream(
    boost::asio::ip::tcp::socket socket);
// `context` outlives the stream.
std::unique_ptr<ByteStream> MakeTlsStream(boost::asio::ip::tcp::socket socket,
                                          boost::asio::ssl::context& context);

// TLS 1.2 or later with this certificate chain and key (PEM files).
// InputError names the file that cannot be used, or says that they do not
// belong together.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> LoadTlsContext(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace millrace::coordinator
