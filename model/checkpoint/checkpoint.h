#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

struct GgufVocabulary;  // model/tokenizer/gguf_vocabulary.h

// generation_config.json; sampling defaults of the command line.
struct GenerationDefaults {
  bool do_sample = false;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int64_t> top_k;
};

// A model on disk, opened and checked: a Hugging Face directory or a GGUF file
// (the first of several splits). Everything a file says has been bounded before
// this object exists; weights themselves are read later, by range.
// Immutable after Open; any thread.
class Checkpoint {
 public:
  // InputError naming the file, the tensor or key, and the reason.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& path);
  virtual ~Checkpoint() = default;

  [[nodiscard]] virtual const ModelSpec& spec() const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& files() const = 0;

  // Fills `out` from `offset` of file `file_index`. Any thread.
  [[nodiscard]] virtual absl::Status Read(int32_t file_index, int64_t offset,
                                          absl::Span<std::byte> out) const = 0;

  // Exactly one of the two is set where the checkpoint has a tokenizer.
  // Path of tokenizer.json; null when there is none.
  [[nodiscard]] virtual const std::string* tokenizer_json_path() const = 0;
  // Null when there is none.
  [[nodiscard]] virtual const GgufVocabulary* gguf_vocabulary() const = 0;

  // Jinja source; null when there is none.
  [[nodiscard]] virtual const std::string* chat_template() const = 0;
  [[nodiscard]] virtual const std::optional<GenerationDefaults>&
  generation_defaults() const = 0;
  // Text of the bos / eos token as templates see them; empty when unknown.
  [[nodiscard]] virtual const std::string& bos_token_text() const = 0;
  [[nodiscard]] virtual const std::string& eos_token_text() const = 0;
};

}  // namespace millrace::model
