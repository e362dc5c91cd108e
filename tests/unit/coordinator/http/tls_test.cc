// TLS serves what plain HTTP serves, and a certificate that cannot be used is
// named. Provoked with a certificate made here, its wrong key, and a client
// that does not speak TLS.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/connect.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/read.hpp"
#include "boost/asio/ssl.hpp"
#include "boost/asio/write.hpp"
#include "coordinator/http/http_server.h"
#include "gtest/gtest.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "tests/unit/coordinator/http/test_client.h"

namespace millrace::coordinator {
namespace {

namespace asio = boost::asio;

// Writes NAME.crt and NAME.key, self-signed.
void MakeCertificate(const std::string& name) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  FILE* file = std::fopen((name + ".crt").c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen((name + ".key").c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

class EchoHandler final : public HttpHandler {
 public:
  bool AcceptHead(const HttpRequest& /*head*/,
                  HttpResponse& /*refusal*/) override {
    return true;
  }
  void Handle(HttpRequest request,
              std::shared_ptr<Exchange> exchange) override {
    HttpResponse response;
    response.body = request.body;
    exchange->Send(std::move(response));
  }
  HttpResponse Refusal(int status, absl::string_view why) override {
    HttpResponse response;
    response.status = status;
    response.body = std::string(why);
    return response;
  }
};

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeCertificate(prefix_);
    MakeCertificate(other_);
    options_.clock = &clock_;
    options_.tls_certificate_file = prefix_ + ".crt";
    options_.tls_key_file = prefix_ + ".key";
    options_.limits.sweep_every = absl::Milliseconds(10);
    options_.limits.handshake = absl::Milliseconds(100);
  }

  const std::string prefix_ = testing::TempDir() + "/millrace_tls_test";
  const std::string other_ = testing::TempDir() + "/millrace_tls_test_other";
  SystemClock clock_;
  HttpServer::Options options_;
};

TEST_F(TlsTest, ServesUnderTls) {
  EchoHandler handler;
  auto server = HttpServer::Create(options_);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string url = (*server)->url();
  EXPECT_TRUE(absl::StartsWith(url, "https://127.0.0.1:"));
  (*server)->Serve(handler);

  asio::io_context loop;
  asio::ssl::context context(asio::ssl::context::tls_client);
  asio::ssl::stream<asio::ip::tcp::socket> stream(loop, context);
  stream.next_layer().connect(
      {asio::ip::address_v4::loopback(),
       static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)))});
  stream.handshake(asio::ssl::stream_base::client);
  const std::string body(300000, 'x');
  asio::write(stream, asio::buffer(
                          RequestText("/", body) +
                          RequestText("/", "second", "Connection: close\r\n")));
  std::string answers;
  boost::system::error_code error;
  asio::read(stream, asio::dynamic_buffer(answers), error);
  EXPECT_TRUE(absl::StrContains(answers, body));
  EXPECT_TRUE(absl::EndsWith(answers, "\r\n\r\nsecond"));

  TestClient plain(url);
  plain.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_FALSE(absl::StrContains(plain.ReadToEnd(), "HTTP"));
  TestClient silent(url);
  EXPECT_EQ(silent.ReadToEnd(), "");
  (*server)->Stop();
}

TEST_F(TlsTest, NamesTheFileThatCannotBeUsed) {
  options_.tls_key_file = other_ + ".key";
  EXPECT_TRUE(absl::StrContains(HttpServer::Create(options_).status().message(),
                                "_other.key"));
  options_.tls_certificate_file = other_ + ".missing";
  EXPECT_TRUE(absl::StrContains(HttpServer::Create(options_).status().message(),
                                "_other.missing"));
  options_.tls_key_file.clear();
  EXPECT_TRUE(absl::StrContains(HttpServer::Create(options_).status().message(),
                                "--tls-key"));
}

}  // namespace
}  // namespace millrace::coordinator
