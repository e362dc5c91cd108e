#include "coordinator/api/generation_fields.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"
#include "coordinator/api/api_error.h"

namespace millrace::coordinator {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
// A penalty divides logits; beyond this the answer is noise.
constexpr double kRepetitionPenaltyMax = 10;
constexpr double kRepetitionPenaltyMin = 0.01;

absl::Status ReadLogitBias(const FieldReader& reader, int64_t vocab_size,
                           std::vector<transport::LogitBias>& out) {
  constexpr absl::string_view kName = "logit_bias";
  const Json* value = reader.Find(kName);
  if (value == nullptr) {
    return absl::OkStatus();
  }
  if (!value->is_object()) {
    return reader.Error(kName, "must be an object from token id to bias");
  }
  const auto& object = value->get_object();
  if (static_cast<int64_t>(object.size()) > transport::kLogitBiasMax) {
    return reader.Error(
        kName,
        absl::StrCat("may name at most ", transport::kLogitBiasMax, " tokens"));
  }
  for (const auto& member : object) {
    const absl::string_view key(member.key().data(), member.key().size());
    int64_t token = 0;
    if (key.empty() || key[0] == '+' || key[0] == ' ' ||
        !absl::SimpleAtoi(key, &token) || token < 0 || token >= vocab_size) {
      return reader.Error(
          kName,
          absl::StrCat("keys must be token ids from 0 to ", vocab_size - 1));
    }
    const Json& bias = member.value();
    const double number = bias.is_number() ? bias.to_number<double>() : 1e9;
    if (!(number >= -100 && number <= 100)) {
      return reader.Error(kName, "biases must be numbers from -100 to 100");
    }
    out.push_back({static_cast<int32_t>(token), static_cast<float>(number)});
  }
  // One order whatever the client wrote; a repeated id counts once.
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  const auto same = [](const auto& a, const auto& b) {
    return a.token == b.token;
  };
  if (std::adjacent_find(out.begin(), out.end(), same) != out.end()) {
    return reader.Error(kName, "names a token twice");
  }
  return absl::OkStatus();
}

absl::Status ReadStop(const FieldReader& reader,
                      std::vector<std::string>& out) {
  constexpr absl::string_view kName = "stop";
  const Json* value = reader.Find(kName);
  if (value == nullptr) {
    return absl::OkStatus();
  }
  const absl::Status wrong =
      reader.Error(kName, absl::StrCat("must be a string or a list of at most ",
                                       kStopStringsMax,
                                       " strings, none empty or longer "
                                       "than ",
                                       kStopBytesMax, " bytes"));
  const auto take = [&](const Json& item) {
    if (!item.is_string() || item.get_string().empty() ||
        static_cast<int64_t>(item.get_string().size()) > kStopBytesMax) {
      return false;
    }
    out.emplace_back(TextOf(item.get_string()));
    return true;
  };
  if (value->is_string()) {
    return take(*value) ? absl::OkStatus() : wrong;
  }
  if (!value->is_array() ||
      static_cast<int64_t>(value->get_array().size()) > kStopStringsMax) {
    return wrong;
  }
  for (const Json& item : value->get_array()) {
    if (!take(item)) {
      return wrong;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadStream(const FieldReader& reader, GenerationFields& fields) {
  MILLRACE_ASSIGN_OR_RETURN(const auto stream, reader.Bool("stream"));
  fields.stream = stream.value_or(false);
  const Json* options = reader.Find("stream_options");
  if (options == nullptr) {
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const FieldReader inner,
      FieldReader::From(*options, reader.NameOf("stream_options")));
  MILLRACE_ASSIGN_OR_RETURN(const auto usage, inner.Bool("include_usage"));
  fields.include_usage = usage.value_or(false);
  if (!fields.stream) {
    return reader.Error("stream_options", "is only allowed with stream true");
  }
  return absl::OkStatus();
}

absl::Status ReadSampling(const FieldReader& reader, const ModelLimits& limits,
                          transport::SamplingOptions& out) {
  const SamplingDefaults& defaults = limits.defaults;
  MILLRACE_ASSIGN_OR_RETURN(const auto temperature,
                            reader.Number("temperature", 0, 2));
  MILLRACE_ASSIGN_OR_RETURN(const auto top_p, reader.Number("top_p", 0, 1));
  MILLRACE_ASSIGN_OR_RETURN(const auto min_p, reader.Number("min_p", 0, 1));
  MILLRACE_ASSIGN_OR_RETURN(const auto top_k,
                            reader.Integer("top_k", -1, kInt32Max));
  MILLRACE_ASSIGN_OR_RETURN(const auto presence,
                            reader.Number("presence_penalty", -2, 2));
  MILLRACE_ASSIGN_OR_RETURN(const auto frequency,
                            reader.Number("frequency_penalty", -2, 2));
  MILLRACE_ASSIGN_OR_RETURN(
      const auto repetition,
      reader.Number("repetition_penalty", kRepetitionPenaltyMin,
                    kRepetitionPenaltyMax));
  const auto number = [](const auto& asked, const auto& model,
                         double otherwise) {
    return static_cast<float>(asked.value_or(model.value_or(otherwise)));
  };
  const std::optional<double> none;
  out.temperature = number(temperature, defaults.temperature, 1);
  out.top_p = number(top_p, defaults.top_p, 1);
  out.min_p = number(min_p, defaults.min_p, 0);
  out.top_k = static_cast<int32_t>(
      std::max<int64_t>(0, top_k.value_or(defaults.top_k.value_or(0))));
  out.presence_penalty = number(presence, none, 0);
  out.frequency_penalty = number(frequency, none, 0);
  out.repetition_penalty = number(repetition, defaults.repetition_penalty, 1);
  return ReadLogitBias(reader, limits.vocab_size, out.logit_bias);
}

}  // namespace

absl::Status ReadGenerationFields(const FieldReader& reader,
                                  const ModelLimits& limits,
                                  GenerationFields& fields) {
  MILLRACE_RETURN_IF_ERROR(ReadSampling(reader, limits, fields.sampling));
  MILLRACE_ASSIGN_OR_RETURN(fields.seed, reader.Seed("seed"));
  MILLRACE_ASSIGN_OR_RETURN(const auto n,
                            reader.Integer("n", 1, kSequencesMax));
  fields.n = n.value_or(1);
  MILLRACE_RETURN_IF_ERROR(ReadStop(reader, fields.stop));
  MILLRACE_ASSIGN_OR_RETURN(
      fields.stop_token_ids,
      reader.Ids("stop_token_ids", limits.vocab_size, kStopTokensMax));
  MILLRACE_ASSIGN_OR_RETURN(const auto ignore_eos, reader.Bool("ignore_eos"));
  fields.ignore_eos = ignore_eos.value_or(false);
  MILLRACE_ASSIGN_OR_RETURN(const auto skip,
                            reader.Bool("skip_special_tokens"));
  fields.skip_special = skip.value_or(true);
  MILLRACE_ASSIGN_OR_RETURN(const auto ids, reader.Bool("return_token_ids"));
  fields.return_token_ids = ids.value_or(false);
  MILLRACE_ASSIGN_OR_RETURN(const auto user, reader.String("user"));
  return ReadStream(reader, fields);
}

absl::Status ReadTokensMax(const FieldReader& reader, absl::string_view name,
                           int64_t low, GenerationFields& fields) {
  MILLRACE_ASSIGN_OR_RETURN(const auto tokens,
                            reader.Integer(name, low, kInt32Max));
  if (tokens.has_value() &&
      (!fields.tokens_max.has_value() || *tokens < *fields.tokens_max)) {
    fields.tokens_max = tokens;
    fields.tokens_max_name = std::string(name);
  }
  return absl::OkStatus();
}

absl::Status RefuseUnsupported(const FieldReader& reader) {
  constexpr absl::string_view kWhy = "is not supported by this version";
  for (const absl::string_view name :
       {"tools", "functions", "suffix", "audio", "web_search_options",
        "function_call", "guided_json", "guided_regex", "guided_grammar",
        "guided_choice", "use_beam_search", "prompt_logprobs"}) {
    const Json* value = reader.Find(name);
    if (value != nullptr &&
        !(value->is_array() && value->get_array().empty()) &&
        !(value->is_bool() && !value->get_bool())) {
      return reader.Error(name, kWhy);
    }
  }
  if (const Json* choice = reader.Find("tool_choice"); choice != nullptr) {
    if (!choice->is_string() ||
        (choice->get_string() != "none" && choice->get_string() != "auto")) {
      return reader.Error("tool_choice", kWhy);
    }
  }
  if (const Json* format = reader.Find("response_format"); format != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(
        const FieldReader inner,
        FieldReader::From(*format, reader.NameOf("response_format")));
    MILLRACE_ASSIGN_OR_RETURN(const auto type, inner.String("type"));
    if (type != "text") {
      return reader.Error("response_format",
                          "only type text is supported by this version");
    }
  }
  if (const Json* kinds = reader.Find("modalities"); kinds != nullptr) {
    const boost::json::array text = {"text"};
    if (!kinds->is_array() || kinds->get_array() != text) {
      return reader.Error("modalities", "only [\"text\"] is supported");
    }
  }
  MILLRACE_ASSIGN_OR_RETURN(const auto tokens_min,
                            reader.Integer("min_tokens", 0, kInt32Max));
  if (tokens_min.value_or(0) > 0) {
    return reader.Error("min_tokens", kWhy);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokensToGenerate(const GenerationFields& fields,
                                         const ModelLimits& limits,
                                         int64_t prompt_tokens,
                                         int64_t otherwise,
                                         absl::string_view prompt_name) {
  constexpr absl::string_view kCode = "context_length_exceeded";
  const int64_t left = limits.context - prompt_tokens;
  const int64_t least = fields.tokens_max == 0 ? 0 : 1;
  if (left < least) {
    return ParamError(
        prompt_name,
        absl::StrCat("this model's context is ", limits.context,
                     " tokens, but the prompt has ",
                     Counted(prompt_tokens, "token"), "; at most ",
                     limits.context - least, " leave room for an answer"),
        kCode);
  }
  if (fields.tokens_max.value_or(0) > left) {
    return ParamError(
        fields.tokens_max_name,
        absl::StrCat("this model's context is ", limits.context,
                     " tokens and the prompt has ",
                     Counted(prompt_tokens, "token"), ", so that at most ",
                     left, " can be generated"),
        kCode);
  }
  return fields.tokens_max.value_or(std::min(otherwise, left));
}

}  // namespace millrace::coordinator
