#include "cli/server_options.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/interrupt.h"
#include "cli/pipeline_config.h"
#include "cli/version.h"
#include "planner/even_cuts.h"

namespace millrace::cli {
namespace {

constexpr int64_t kSequencesDefault = 16;
// How long running answers may take once the server was told to stop.
constexpr absl::Duration kDrainDeadline = absl::Seconds(8);
constexpr absl::Duration kDrainPoll = absl::Milliseconds(20);

// "models/Smol.gguf" is served as "Smol".
std::string NameOf(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  if (!name.has_filename()) {
    name = name.parent_path();
  }
  return name.extension() == ".gguf" ? name.stem().string()
                                     : name.filename().string();
}

// An error about the address, by the option that the command has for it.
absl::Status ByAddressOption(const absl::Status& status,
                             const std::string& option) {
  const std::string object = ObjectOf(status);
  return option.empty() || (object != "--host" && object != "--port")
             ? status
             : UsageError(option, WhatOf(status), HintOf(status));
}

}  // namespace

void ServerFlags::Define(CLI::App& app, bool with_address) {
  if (with_address) {
    app.add_option("--host", host, "Address to listen on");
    app.add_option("--port", port, "Port to listen on; 0: any free one")
        ->check(CLI::Range(0, 65535));
  }
  app.add_option("--api-key-file", api_key_file,
                 "Keys that clients must show, one a line");
  app.add_option("--tls-cert", tls_cert, "Certificate chain, PEM");
  app.add_option("--tls-key", tls_key, "Its private key, PEM");
  app.add_flag("--insecure", insecure,
               "The network is trusted: listen and link off loopback without "
               "keys or encryption");
  app.add_flag("--parse-special", parse_special,
               "Let messages hold turn markers and other added tokens");
  app.add_option("--model-name", model_name,
                 "What clients write in `model`; default: the file's name");
}

coordinator::ServedModel ServedModelOf(const ModelHost& host,
                                       const SamplingChoice& sampling,
                                       const ServerFlags& flags,
                                       const std::string& path) {
  const model::Checkpoint& checkpoint = *host.checkpoint;
  coordinator::ServedModel served;
  served.name = flags.model_name.empty() ? NameOf(path) : flags.model_name;
  served.tokenizer = host.tokenizer.get();
  served.chat_template = host.chat_template.get();
  served.bos_text = checkpoint.bos_token_text();
  served.eos_text = checkpoint.eos_token_text();
  served.end_tokens = checkpoint.spec().stop_tokens;
  served.limits.context = host.compute.context;
  served.limits.vocab_size = checkpoint.spec().vocab_size;
  served.parse_special = flags.parse_special;
  coordinator::SamplingDefaults& defaults = served.limits.defaults;
  // Without a generation_config.json and without flags the API's defaults
  // stand: temperature 1.
  if (checkpoint.generation_defaults().has_value() ||
      sampling.temperature != 0) {
    defaults.temperature = sampling.temperature;
  }
  defaults.top_k = sampling.top_k;
  defaults.top_p = sampling.top_p;
  defaults.min_p = sampling.min_p;
  defaults.repetition_penalty = sampling.repetition_penalty;
  return served;
}

absl::StatusOr<std::unique_ptr<coordinator::ApiServer>> StartApi(
    const ServerFlags& flags, coordinator::ServedModel model,
    coordinator::Engine& engine) {
  coordinator::ApiServer::Options options;
  options.engine = &engine;
  options.model = std::move(model);
  if (!flags.api_key_file.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(
        options.keys, coordinator::KeyStore::FromFile(flags.api_key_file));
  }
  MILLRACE_RETURN_IF_ERROR(
      ByAddressOption(coordinator::CheckListenAddress(
                          flags.host, !options.keys.empty(), flags.insecure),
                      flags.address_option));
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return UsageError("--tls-cert", "goes together with --tls-key",
                      "give both or neither");
  }
  options.host = flags.host;
  options.port = flags.port;
  options.tls_certificate_file = flags.tls_cert;
  options.tls_key_file = flags.tls_key;
  options.version = Version();
  absl::StatusOr<std::unique_ptr<coordinator::ApiServer>> server =
      coordinator::ApiServer::Start(std::move(options));
  if (!server.ok()) {
    return ByAddressOption(server.status(), flags.address_option);
  }
  return server;
}

void ServeUntilInterrupted(coordinator::ApiServer& server, Console& console) {
  AwaitInterrupt(absl::InfiniteDuration());
  console.Note("stopping: running answers may end, send again to cut them");
  std::atomic<bool> drained{false};
  std::thread drain([&server, &drained] {
    server.Drain(kDrainDeadline);
    drained = true;
  });
  while (!drained && !AwaitInterruptAfter(1, kDrainPoll)) {
  }
  if (!drained) {
    console.Note("cutting the running answers");
    server.CutRunning();
  }
  drain.join();
  server.Stop();
}

absl::StatusOr<int64_t> ServerSequences(const ModelHost& host,
                                        bool one_process) {
  const ComputeOptions& compute = host.compute;
  const int64_t wanted =
      compute.concurrency > 0 ? compute.concurrency : kSequencesDefault;
  if (!compute.memory_bytes.has_value()) {
    return wanted;
  }
  const model::ModelSpec& spec = host.checkpoint->spec();
  const auto fits = [&](int64_t sequences) {
    const PipelineConfig pipeline = MakePipelineConfig(
        spec, compute, sequences, FirstLayers(spec, compute));
    if (one_process) {
      return ResidentBytes(spec, pipeline, 0, pipeline.stages.size()) <=
             *compute.memory_bytes;
    }
    for (size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
      if (ResidentBytes(spec, pipeline, stage, 1) > *compute.memory_bytes) {
        return false;
      }
    }
    return true;
  };
  int64_t sequences = wanted;
  while (sequences > 1 && compute.concurrency == 0 && !fits(sequences)) {
    --sequences;
  }
  if (!fits(sequences)) {
    return AnswerIsNo(
        "--memory",
        absl::StrCat(HumanSize(*compute.memory_bytes),
                     " do not hold the model and ",
                     Counted(sequences, "sequence"), " of ",
                     Counted(compute.context, "token")),
        "lower --context or --concurrency, or give more memory or stages");
  }
  return sequences;
}

}  // namespace millrace::cli
