#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mutex.h"
#include "coordinator/api/chat_request.h"
#include "coordinator/api/completion_request.h"
#include "coordinator/api/generation.h"

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
  // As /v1/models says; left alone, the start of the server.
  absl::Time created = absl::UnixEpoch();
  // Added tokens in messages count as such (--parse-special).
  bool parse_special = false;
};

// Turns a request body into what is to be run or answered, or into a refusal.
// No I/O; any thread.
class RequestPlanner {
 public:
  // `model`, what it points to, and `clock` outlive the planner.
  RequestPlanner(const ServedModel& model, std::string fingerprint,
                 const Clock& clock);

  // Everything but `received` is filled in.
  absl::StatusOr<GenerationPlan> PlanChat(const Json& body);
  absl::StatusOr<GenerationPlan> PlanText(const Json& body);
  absl::StatusOr<Json> Tokenize(const Json& body) const;
  absl::StatusOr<Json> Detokenize(const Json& body) const;

 private:
  [[nodiscard]] absl::Status CheckModel(const FieldReader& reader) const;
  GenerateRequest MakeRequest(const GenerationFields& fields, uint64_t seed,
                              int64_t choice) const;
  GenerationPlan NewPlan(const GenerationFields& fields, bool chat);
  uint64_t Draw();

  const ServedModel& model_;
  const std::string fingerprint_;
  const Clock& clock_;
  const ChatPromptMaker chat_prompts_;
  Mutex mutex_;
  std::mt19937_64 generator_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::coordinator
