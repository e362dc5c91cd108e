#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "base/mutex.h"
#include "coordinator/api/api_metrics.h"
#include "coordinator/api/chat_request.h"
#include "coordinator/api/completion_request.h"
#include "coordinator/api/generation.h"
#include "coordinator/api/key_store.h"
#include "coordinator/api/request_workers.h"
#include "coordinator/http/exchange.h"

namespace millrace::coordinator {

// The model as the API shows it. What it points to outlives the server.
struct ServedModel {
  std::string name;                             // what clients write in `model`
  const model::Tokenizer* tokenizer = nullptr;  // null: ids only
  const model::ChatTemplate* chat_template = nullptr;  // null: no chat
  std::string bos_text;  // variables of the template
  std::string eos_text;
  std::vector<int32_t> end_tokens;  // end an answer unless ignore_eos
  ModelLimits limits;
  absl::Time created = absl::UnixEpoch();  // as /v1/models says
  // Added tokens in messages count as such (--parse-special).
  bool parse_special = false;
};

// Routes requests, refuses bad ones and turns good ones into generations.
// Handlers run on the server's loop and leave what takes time to workers.
class ApiHandler final : public HttpHandler {
 public:
  struct Options {
    ServedModel model;
    KeyStore keys;
    std::string version;      // of the program
    std::string fingerprint;  // system_fingerprint of all answers
    std::shared_ptr<const GenerationServices> services;
    std::function<int64_t()> num_connections;
    int num_workers = 2;
    int64_t body_bytes_max = int64_t{8} << 20;
  };
  explicit ApiHandler(Options options);
  ~ApiHandler() override;

  bool AcceptHead(const HttpRequest& head, HttpResponse& refusal) override;
  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  HttpResponse Refusal(int status, absl::string_view why) override;

  // From now on requests to generate are refused with 503. Any thread.
  void BeginDrain() { draining_.store(true, std::memory_order_relaxed); }

 private:
  struct Route;
  // Null when no path fits.
  static const Route* FindRoute(absl::string_view path);

  // Answers of GET, at once.
  HttpResponse Models(const HttpRequest& request) const;
  HttpResponse Model(const HttpRequest& request) const;
  HttpResponse Health(const HttpRequest& request) const;
  HttpResponse Ready(const HttpRequest& request) const;
  HttpResponse Version(const HttpRequest& request) const;
  HttpResponse Metrics(const HttpRequest& request) const;

  // Answers of POST, on a worker.
  void Work(const Route& route, const HttpRequest& request,
            const std::shared_ptr<Exchange>& exchange);
  absl::StatusOr<GenerationPlan> PlanChat(const Json& body);
  absl::StatusOr<GenerationPlan> PlanText(const Json& body);
  absl::StatusOr<Json> Tokenize(const Json& body) const;
  absl::StatusOr<Json> Detokenize(const Json& body) const;

  [[nodiscard]] absl::Status CheckModel(const FieldReader& reader) const;
  [[nodiscard]] absl::Status CheckServing() const;
  [[nodiscard]] Json ModelEntry() const;
  GenerateRequest MakeRequest(const GenerationFields& fields, uint64_t seed,
                              int64_t choice) const;
  GenerationPlan NewPlan(const GenerationFields& fields, bool chat);
  uint64_t Draw();

  const Options options_;
  const ChatPromptMaker chat_prompts_;
  std::atomic<bool> draining_{false};
  Mutex mutex_;
  std::mt19937_64 generator_ ABSL_GUARDED_BY(mutex_);
  RequestWorkers workers_;  // last: its threads use everything above
};

}  // namespace millrace::coordinator
