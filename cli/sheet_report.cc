#include "cli/sheet_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "boost/json/array.hpp"
#include "cli/report_line.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

// Of f16, the default of the cache.
constexpr model::KvFormat kKvFormat = model::kKv16Bit;

json::object LayerJson(const planner::LayerSheet& layer, int64_t index) {
  planner::ModelSheet alone;
  alone.layers = {layer};
  const planner::SheetTotals totals = planner::TotalsOf(alone, kKvFormat);
  json::object out;
  out["layer"] = index;
  out["kind"] = layer.kind;
  out["parameters"] = totals.parameters;
  out["stored_bytes"] = totals.stored_bytes;
  out["weights_bytes"] = totals.weights_bytes;
  out["experts"] = layer.experts;
  out["experts_per_token"] = layer.experts_used;
  out["expert_bytes"] = planner::TotalsOf(layer.expert).weights_bytes;
  out["kv_bytes_per_token"] = planner::KvBytesPerToken(layer, kKvFormat);
  out["window"] = layer.window;
  out["state_bytes_per_sequence"] = planner::StateBytes(layer);
  out["vectors"] = layer.vectors;
  return out;
}

int64_t Number(const json::object& report, absl::string_view key) {
  return report.at(json::string_view(key.data(), key.size()))
      .to_number<int64_t>();
}

std::string LayerText(const json::object& layer) {
  std::string out(layer.at("kind").get_string());
  if (Number(layer, "window") > 0) {
    absl::StrAppend(&out, ", window ", Number(layer, "window"));
  }
  absl::StrAppend(&out, "; ", HumanSize(Number(layer, "weights_bytes")),
                  " each");
  if (Number(layer, "experts") > 0) {
    absl::StrAppend(&out, " (", Number(layer, "experts_per_token"), " of ",
                    Counted(Number(layer, "experts"), "expert"), " of ",
                    HumanSize(Number(layer, "expert_bytes")), ")");
  }
  if (Number(layer, "kv_bytes_per_token") > 0) {
    absl::StrAppend(&out, ", KV ", Number(layer, "kv_bytes_per_token"),
                    " B a token");
  }
  if (Number(layer, "state_bytes_per_sequence") > 0) {
    absl::StrAppend(&out, ", state ",
                    HumanSize(Number(layer, "state_bytes_per_sequence")));
  }
  return out;
}

// Runs of layers that cost the same are one line.
void AppendLayers(const json::array& layers, std::string& out) {
  size_t begin = 0;
  while (begin < layers.size()) {
    const std::string text = LayerText(layers[begin].get_object());
    size_t end = begin + 1;
    while (end < layers.size() && LayerText(layers[end].get_object()) == text) {
      ++end;
    }
    const std::string numbers = end - begin == 1
                                    ? absl::StrCat(begin)
                                    : absl::StrCat(begin, "-", end - 1);
    absl::StrAppendFormat(&out, "  %-8s %s\n", numbers, text);
    begin = end;
  }
}

}  // namespace

json::object SheetReport(const planner::ModelSheet& sheet) {
  const planner::SheetTotals totals = planner::TotalsOf(sheet, kKvFormat);
  json::object out;
  out["name"] = sheet.name;
  out["family"] = sheet.family;
  out["runs"] = false;
  out["digest"] = sheet.digest;
  out["layers"] = static_cast<int64_t>(sheet.layers.size());
  out["hidden_size"] = sheet.hidden_size;
  out["vocab_size"] = sheet.vocab_size;
  out["context_length"] = sheet.context_length;
  out["parameters"] = totals.parameters;
  out["parameters_active"] = totals.parameters_active;
  out["stored_bytes"] = totals.stored_bytes;
  out["weights_bytes"] = totals.weights_bytes;
  out["kv_bytes_per_token"] =
      totals.kv_bytes_per_token + totals.window_bytes_per_token;
  out["recurrent_bytes_per_sequence"] = totals.recurrent_bytes;
  out["convolution_bytes_per_sequence"] = totals.convolution_bytes;
  out["state_bytes_per_sequence"] =
      totals.recurrent_bytes + totals.convolution_bytes;
  out["head_is_embedding"] = sheet.head_is_embedding;
  json::array layers;
  for (const planner::LayerSheet& layer : sheet.layers) {
    layers.push_back(LayerJson(layer, static_cast<int64_t>(layers.size())));
  }
  out["layer_details"] = std::move(layers);
  return out;
}

std::string SheetReportText(const json::object& report) {
  std::string out;
  AppendLine(out, "model", std::string(report.at("name").get_string()));
  AppendLine(out, "family",
             absl::StrCat(std::string(report.at("family").get_string()),
                          ", for planning alone"));
  AppendLine(out, "parameters",
             absl::StrFormat(
                 "%.2f M, %.2f M of them multiplied for a token",
                 report.at("parameters").to_number<double>() / 1e6,
                 report.at("parameters_active").to_number<double>() / 1e6));
  AppendLine(out, "sizes",
             absl::StrCat(Counted(Number(report, "layers"), "layer"),
                          ", hidden ", Number(report, "hidden_size"),
                          ", vocabulary ", Number(report, "vocab_size"),
                          ", context ", Number(report, "context_length")));
  AppendLine(out, "stored", HumanSize(Number(report, "stored_bytes")));
  AppendLine(out, "in memory", HumanSize(Number(report, "weights_bytes")));
  AppendLine(
      out, "KV cache",
      absl::StrCat(Number(report, "kv_bytes_per_token"), " B a token in f16"));
  AppendLine(out, "state",
             absl::StrCat(HumanSize(Number(report, "state_bytes_per_sequence")),
                          " a sequence"));
  AppendLayers(report.at("layer_details").get_array(), out);
  return out;
}

}  // namespace millrace::cli
