#include "coordinator/http/byte_stream.h"

#include <utility>

#include "base/error.h"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/write.hpp"

namespace millrace::coordinator {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)) {}

  void Handshake(Done done) override {
    asio::post(socket_.get_executor(),
               [done = std::move(done)] { done(error_code(), 0); });
  }
  void Read(asio::mutable_buffer into, Done done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void Write(asio::const_buffer from, Done done) override {
    asio::async_write(socket_, from, std::move(done));
  }
  void EndSending() override {
    error_code ignored;  // the peer may be gone already
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  tcp::socket socket_;
};

class TlsStream final : public ByteStream {
 public:
  TlsStream(tcp::socket socket, asio::ssl::context& context)
      : stream_(std::move(socket), context) {}

  void Handshake(Done done) override {
    stream_.async_handshake(
        asio::ssl::stream_base::server,
        [done = std::move(done)](const error_code& error) { done(error, 0); });
  }
  void Read(asio::mutable_buffer into, Done done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void Write(asio::const_buffer from, Done done) override {
    asio::async_write(stream_, from, std::move(done));
  }
  // The closing alert is not sent: every answer carries its own end, so a cut
  // cannot pass for one.
  void EndSending() override {
    error_code ignored;  // the peer may be gone already
    stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<ByteStream> MakeTlsStream(tcp::socket socket,
                                          asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

absl::StatusOr<std::unique_ptr<asio::ssl::context>> LoadTlsContext(
    const std::string& certificate_file, const std::string& key_file) {
  auto context =
      std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  context->set_options(
      asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
          asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression,
      error);
  context->use_certificate_chain_file(certificate_file, error);
  if (error) {
    return InputError(certificate_file,
                      "no certificate chain can be read: " + error.message(),
                      "give --tls-cert a PEM file");
  }
  context->use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (error) {
    return InputError(
        key_file, "no key of this certificate can be read: " + error.message(),
        "give --tls-key the PEM file that belongs to " + certificate_file);
  }
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return InputError(key_file, "is not the key of " + certificate_file);
  }
  return context;
}

}  // namespace millrace::coordinator
