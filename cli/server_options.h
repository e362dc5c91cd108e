#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/compute_options.h"
#include "cli/console.h"
#include "cli/model_host.h"
#include "coordinator/api/api_server.h"
#include "coordinator/engine/engine.h"

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// The options of every command that listens for clients.
struct ServerFlags {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string api_key_file;
  std::string tls_cert;
  std::string tls_key;
  bool insecure = false;
  bool parse_special = false;
  std::string model_name;
  // The one option that holds both parts of the address, which errors then
  // name; empty: --host and --port.
  std::string address_option;

  // `with_address`: --host and --port; a coordinator has --http instead.
  void Define(CLI::App& app, bool with_address);
};

// What the API shows of a model; borrows from `host`.
coordinator::ServedModel ServedModelOf(const ModelHost& host,
                                       const SamplingChoice& sampling,
                                       const ServerFlags& flags,
                                       const std::string& path);

// Starts the API over `engine`. UsageError for addresses and key files.
absl::StatusOr<std::unique_ptr<coordinator::ApiServer>> StartApi(
    const ServerFlags& flags, coordinator::ServedModel model,
    coordinator::Engine& engine);

// Waits for an interrupt, then drains: running answers end, at most so long.
// A second interrupt cuts them.
void ServeUntilInterrupted(coordinator::ApiServer& server, Console& console);

// Sequences that the KV pools of a server hold: what was asked for, or 16, or
// fewer where --memory holds no more; it bounds `one_process` with all stages,
// else each worker. AnswerIsNo when not even one fits.
absl::StatusOr<int64_t> ServerSequences(const ModelHost& host,
                                        bool one_process);

}  // namespace millrace::cli
