#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "cli/model_report.h"
#include "cli/report_line.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

std::string Text(const Json& value) {
  return value.is_string() ? Printable(std::string(value.get_string()), 512)
                           : WriteJson(value);
}

std::string Size(const Json& value) {
  return HumanSize(value.to_number<int64_t>());
}

std::string FormatsText(const json::object& formats) {
  std::string out;
  for (const auto& member : formats) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", std::string(member.key()),
                    " ", Size(member.value()));
  }
  return out;
}

// Runs of layers that differ only in their number are one line.
void AppendLayers(const json::array& layers, std::string& out) {
  size_t begin = 0;
  while (begin < layers.size()) {
    json::object first = layers[begin].get_object();
    first.erase("layer");
    size_t end = begin + 1;
    while (end < layers.size()) {
      json::object next = layers[end].get_object();
      next.erase("layer");
      if (next != first) {
        break;
      }
      ++end;
    }
    const std::string numbers = end - begin == 1
                                    ? absl::StrCat(begin)
                                    : absl::StrCat(begin, "-", end - 1);
    const std::string window =
        first["window"].get_int64() > 0
            ? absl::StrCat(" of ", first["window"].get_int64())
            : std::string();
    absl::StrAppendFormat(&out,
                          "  %-8s %s%s, rotation %s; %s each (%s), KV %s a "
                          "token\n",
                          numbers, Text(first["kind"]), window,
                          Text(first["rotation"]), Size(first["weights_bytes"]),
                          FormatsText(first["bytes_by_format"].get_object()),
                          Size(first["kv_bytes_per_token"]));
    begin = end;
  }
}

void AppendTensors(const json::array& tensors, std::string& out) {
  for (const Json& value : tensors) {
    const json::object& tensor = value.get_object();
    absl::StrAppendFormat(&out, "  %-60s %-5s %-18s %s\n",
                          Text(tensor.at("name")), Text(tensor.at("format")),
                          Text(tensor.at("shape")), Size(tensor.at("bytes")));
  }
}

// "gguf gpt2, smollm, 49152 tokens" and "368 bytes".
std::string TextPart(const Json& value) {
  if (value.is_null()) {
    return "none";
  }
  const json::object& part = value.get_object();
  std::string out;
  for (const auto& [key, unit] :
       {std::pair("kind", ""), std::pair("pattern", ""),
        std::pair("tokens", "token"), std::pair("bytes", "byte")}) {
    const Json* field = part.if_contains(key);
    if (field != nullptr && !field->is_null()) {
      absl::StrAppend(&out, out.empty() ? "" : ", ",
                      *unit == '\0'
                          ? Text(*field)
                          : Counted(field->to_number<int64_t>(), unit));
    }
  }
  if (!part.at("error").is_null()) {
    absl::StrAppend(&out, "; damaged: ", Text(part.at("error")));
  }
  return out;
}

void AppendVerification(const json::object& report, std::string& out) {
  for (const Json& value : report.at("checks").get_array()) {
    const json::object& check = value.get_object();
    AppendLine(out, check.at("ok").get_bool() ? "ok" : "damaged",
               Text(check.at("check")));
  }
  for (const Json& value : report.at("damage").get_array()) {
    const json::object& damage = value.get_object();
    absl::StrAppend(&out, "  ", Text(damage.at("file")));
    if (!damage.at("tensor").is_null()) {
      absl::StrAppend(&out, ": ", Text(damage.at("tensor")));
    }
    absl::StrAppend(&out, ": ", Text(damage.at("why")), "\n");
  }
}

}  // namespace

std::string ModelReportText(const json::object& report) {
  std::string out;
  AppendLine(out, "model", Text(report.at("name")));
  AppendLine(out, "family", Text(report.at("family")));
  AppendLine(out, "digest", Text(report.at("digest")));
  const double parameters = report.at("parameters").to_number<double>();
  const double active = report.at("parameters_active").to_number<double>();
  AppendLine(out, "parameters",
             absl::StrFormat("%.2f M, %.2f M of them multiplied for a token",
                             parameters / 1e6, active / 1e6));
  AppendLine(
      out, "sizes",
      absl::StrCat(Counted(report.at("layers").to_number<int64_t>(), "layer"),
                   ", hidden ", Text(report.at("hidden_size")), ", vocabulary ",
                   Text(report.at("vocab_size")), ", context ",
                   Text(report.at("context_length"))));
  AppendLine(out, "stored",
             absl::StrCat(
                 Size(report.at("stored_bytes")), " (",
                 FormatsText(report.at("bytes_by_format").get_object()), ")"));
  AppendLine(out, "in memory", Size(report.at("weights_bytes")));
  AppendLine(
      out, "KV cache",
      absl::StrCat(Size(report.at("kv_bytes_per_token")), " a token in f16"));
  if (const Json* tokenizer = report.if_contains("tokenizer")) {
    AppendLine(out, "tokenizer", TextPart(*tokenizer));
    AppendLine(out, "template", TextPart(report.at("chat_template")));
  }
  AppendLine(out, "stop tokens", Text(report.at("stop_tokens")));
  AppendLine(out, "embedding",
             Size(report.at("embedding").at("weights_bytes")));
  AppendLayers(report.at("layer_details").get_array(), out);
  AppendLine(out, "head",
             absl::StrCat(Size(report.at("head").at("weights_bytes")),
                          report.at("head_is_embedding").get_bool()
                              ? ", the embedding again"
                              : ""));
  if (const Json* tensors = report.if_contains("tensors")) {
    AppendTensors(tensors->get_array(), out);
  }
  if (report.contains("checks")) {
    AppendVerification(report, out);
  }
  return out;
}

}  // namespace millrace::cli
