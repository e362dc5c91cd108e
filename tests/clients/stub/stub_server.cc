// Serves the API over an engine without a model, for client tests and for
// trying the HTTP layer alone: stub_server [--port N] [--api-key-file F]
// [--tls-cert F --tls-key F] [--prefill-ms MS]. Prints its URL; SIGTERM drains.

#include <csignal>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "coordinator/api/api_server.h"
#include "tests/clients/stub/fake_tokenizer.h"
#include "tests/clients/stub/stub_engine.h"

namespace millrace::coordinator {
namespace {

int Serve(int count, char** arguments) {
  StubEngine::Options engine_options;
  ApiServer::Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--port" && absl::SimpleAtoi(value, &options.port)) {
      continue;
    }
    if (name == "--api-key-file") {
      auto keys = KeyStore::FromFile(value);
      if (!keys.ok()) {
        std::cerr << keys.status().message() << "\n";
        return 4;
      }
      options.keys = *std::move(keys);
    } else if (name == "--tls-cert") {
      options.tls_certificate_file = value;
    } else if (name == "--tls-key") {
      options.tls_key_file = value;
    } else if (int64_t ms = 0;
               name == "--prefill-ms" && absl::SimpleAtoi(value, &ms)) {
      engine_options.prefill_per_token = absl::Milliseconds(ms);
    } else {
      std::cerr << "unknown option " << name << "\n";
      return 2;
    }
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  StubEngine engine(engine_options);
  const FakeTokenizer tokenizer;
  const auto chat_template = MakeFakeChatTemplate();
  options.engine = &engine;
  options.model.name = "stub";
  options.model.tokenizer = &tokenizer;
  options.model.chat_template = chat_template.get();
  options.model.end_tokens = {FakeTokenizer::kTurnEnd};
  options.model.limits = {.context = engine_options.context,
                          .vocab_size = engine_options.vocab_size,
                          .defaults = {}};
  options.version = "0.0.0-stub";
  auto server = ApiServer::Start(std::move(options));
  if (!server.ok()) {
    std::cerr << server.status().message() << "\n";
    return 1;
  }
  std::cout << (*server)->url() << std::endl;
  int caught = 0;
  sigwait(&signals, &caught);
  (*server)->Drain(absl::Seconds(8));
  (*server)->Stop();
  return 0;
}

}  // namespace
}  // namespace millrace::coordinator

int main(int count, char** arguments) {
  return millrace::coordinator::Serve(count, arguments);
}
