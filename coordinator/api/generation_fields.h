#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/api/field_reader.h"
#include "transport/frame.h"

namespace millrace::coordinator {

// What the model itself asks for where a request does not say (its
// generation_config.json).
struct SamplingDefaults {
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<int64_t> top_k = {};
  std::optional<double> repetition_penalty = {};
};

// Bounds of the model being served.
struct ModelLimits {
  int64_t context = 0;  // tokens of prompt and answer together
  int64_t vocab_size = 0;
  SamplingDefaults defaults = {};
};

// Sequences of one request: prompts times n.
inline constexpr int64_t kSequencesMax = 128;
inline constexpr int64_t kStopStringsMax = 4;
inline constexpr int64_t kStopBytesMax = 1024;
inline constexpr int64_t kStopTokensMax = 64;

// The fields that chat and text completions share, validated.
struct GenerationFields {
  transport::SamplingOptions sampling;  // without seed and choice
  std::optional<uint64_t> seed;
  std::optional<int64_t> tokens_max;
  std::string tokens_max_name = "max_tokens";  // the field that gave it
  int64_t n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool skip_special = true;
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;
};

// Fills `fields` but for tokens_max. ParamError names the first bad field.
absl::Status ReadGenerationFields(const FieldReader& reader,
                                  const ModelLimits& limits,
                                  GenerationFields& fields);

// Whole number of tokens from `name`, from `low` up; the context is checked
// when the prompt's length is known. Of two fields the smaller one counts.
absl::Status ReadTokensMax(const FieldReader& reader, absl::string_view name,
                           int64_t low, GenerationFields& fields);

// Refuses by name what this version does not do, whatever the value, unless it
// is null; empty lists and the values that ask for nothing pass.
absl::Status RefuseUnsupported(const FieldReader& reader);

// Tokens to generate after a prompt of `prompt_tokens`: what was asked for,
// else `otherwise` as far as the context reaches. ParamError
// context_length_exceeded with the numbers, naming `prompt_name` where the
// prompt alone is too long.
absl::StatusOr<int64_t> TokensToGenerate(const GenerationFields& fields,
                                         const ModelLimits& limits,
                                         int64_t prompt_tokens,
                                         int64_t otherwise,
                                         absl::string_view prompt_name);

}  // namespace millrace::coordinator
