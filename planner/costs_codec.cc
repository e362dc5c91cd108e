#include "planner/costs_codec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "planner/costs_check.h"
#include "planner/yaml_map.h"

namespace millrace::planner {
namespace {

// Positions and vectors beyond this are nobody's model.
constexpr int64_t kCountMax = int64_t{1} << 31;

absl::StatusOr<int64_t> Required(const YamlMap& map, absl::string_view key) {
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<int64_t> size, map.Size(key));
  if (!size.has_value()) {
    return map.ErrorAt(key, "is missing", absl::StrCat("give ", key));
  }
  return *size;
}

class CostsReader {
 public:
  explicit CostsReader(absl::string_view object) : object_(object) {}

  absl::StatusOr<ModelCosts> Read(const Yaml& document,
                                  absl::string_view path) {
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap top,
                              YamlMap::From(document, object_, path));
    MILLRACE_RETURN_IF_ERROR(top.OnlyKeys(
        {"version", "name", "digest", "hidden_bytes", "layers", "first", "last",
         "shared_weights_bytes", "kv_block_positions"}));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t version,
                              top.IntegerOr("version", 0, 1'000'000, 0));
    if (version != 1) {
      return top.ErrorAt("version", "must be 1", "give version: 1");
    }
    ModelCosts costs;
    MILLRACE_ASSIGN_OR_RETURN(costs.name, top.StringOr("name", ""));
    MILLRACE_ASSIGN_OR_RETURN(costs.digest, top.StringOr("digest", ""));
    MILLRACE_ASSIGN_OR_RETURN(costs.hidden_bytes,
                              Required(top, "hidden_bytes"));
    MILLRACE_ASSIGN_OR_RETURN(costs.layers,
                              ReadLayers(top, "layers", kLayersMax));
    MILLRACE_ASSIGN_OR_RETURN(costs.first, ReadEnd(top, "first", false));
    MILLRACE_ASSIGN_OR_RETURN(costs.last, ReadEnd(top, "last", true));
    MILLRACE_ASSIGN_OR_RETURN(costs.shared_weights_bytes,
                              top.SizeOr("shared_weights_bytes", 0));
    MILLRACE_ASSIGN_OR_RETURN(
        costs.kv_block_positions,
        top.IntegerOr("kv_block_positions", 1, kCountMax, 1));
    MILLRACE_RETURN_IF_ERROR(CheckCosts(costs, object_));
    return costs;
  }

 private:
  // The layers of a list, runs and groups written out; at most `room`.
  absl::StatusOr<std::vector<LayerCost>> ReadLayers(const YamlMap& map,
                                                    absl::string_view key,
                                                    int64_t room) {
    const Yaml* list = map.Find(key);
    if (list == nullptr || list->kind != Yaml::Kind::kList ||
        list->list.empty()) {
      return map.ErrorAt(key, "must be a list of at least one layer",
                         "give the layers in order");
    }
    std::vector<LayerCost> layers;
    for (size_t i = 0; i < list->list.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(
          const YamlMap entry,
          YamlMap::From(list->list[i], object_,
                        absl::StrCat(map.PathOf(key), "[", i, "]")));
      MILLRACE_ASSIGN_OR_RETURN(const int64_t repeat,
                                entry.IntegerOr("repeat", 1, kLayersMax, 1));
      std::vector<LayerCost> group;
      if (entry.Find("layers") != nullptr) {
        MILLRACE_RETURN_IF_ERROR(entry.OnlyKeys({"repeat", "layers"}));
        MILLRACE_ASSIGN_OR_RETURN(group, ReadLayers(entry, "layers", room));
      } else {
        MILLRACE_ASSIGN_OR_RETURN(LayerCost layer, ReadLayer(entry));
        group.push_back(std::move(layer));
      }
      // Both factors are at most kLayersMax: no overflow.
      const int64_t added = static_cast<int64_t>(group.size()) * repeat;
      if (static_cast<int64_t>(layers.size()) + added > room) {
        return entry.ErrorAt(
            "repeat", absl::StrCat("makes more than ", kLayersMax, " layers"),
            "give fewer layers");
      }
      for (int64_t copy = 0; copy < repeat; ++copy) {
        layers.insert(layers.end(), group.begin(), group.end());
      }
    }
    return layers;
  }

  absl::StatusOr<LayerCost> ReadLayer(const YamlMap& map) {
    MILLRACE_RETURN_IF_ERROR(map.OnlyKeys(
        {"repeat", "kind", "weights", "kv_per_token", "kv_positions_max",
         "state_per_sequence", "flops_per_token", "bytes_per_token", "experts",
         "vectors", "format"}));
    LayerCost layer;
    MILLRACE_ASSIGN_OR_RETURN(layer.kind, map.StringOr("kind", ""));
    MILLRACE_ASSIGN_OR_RETURN(layer.weights_bytes, Required(map, "weights"));
    MILLRACE_ASSIGN_OR_RETURN(layer.kv_per_token,
                              map.SizeOr("kv_per_token", 0));
    MILLRACE_ASSIGN_OR_RETURN(
        layer.kv_positions_max,
        map.IntegerOr("kv_positions_max", 0, kCountMax, 0));
    MILLRACE_ASSIGN_OR_RETURN(layer.state_per_sequence,
                              map.SizeOr("state_per_sequence", 0));
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<double> flops,
                              map.NotNegative("flops_per_token"));
    layer.flops_per_token = flops.value_or(0);
    MILLRACE_ASSIGN_OR_RETURN(
        const int64_t bytes,
        map.SizeOr("bytes_per_token", layer.weights_bytes));
    layer.bytes_per_token = static_cast<double>(bytes);
    MILLRACE_ASSIGN_OR_RETURN(layer.vectors,
                              map.IntegerOr("vectors", 0, kCountMax, 1));
    MILLRACE_ASSIGN_OR_RETURN(layer.format, map.StringOr("format", ""));
    MILLRACE_ASSIGN_OR_RETURN(layer.experts, ReadExperts(map));
    return layer;
  }

  absl::StatusOr<ExpertCost> ReadExperts(const YamlMap& map) {
    const Yaml* value = map.Find("experts");
    ExpertCost experts;
    if (value == nullptr) {
      return experts;
    }
    MILLRACE_ASSIGN_OR_RETURN(
        const YamlMap fields,
        YamlMap::From(*value, object_, map.PathOf("experts")));
    MILLRACE_RETURN_IF_ERROR(fields.OnlyKeys({"count", "used", "bytes_each"}));
    MILLRACE_ASSIGN_OR_RETURN(experts.count,
                              fields.IntegerOr("count", 1, kExpertsMax, 0));
    MILLRACE_ASSIGN_OR_RETURN(experts.used,
                              fields.IntegerOr("used", 1, kExpertsMax, 0));
    if (experts.count == 0 || experts.used == 0 ||
        experts.used > experts.count) {
      return fields.ErrorAt("used", "must be from 1 to count",
                            "give count and used, by one token");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<double> bytes,
                              fields.NotNegative("bytes_each"));
    experts.bytes_each = bytes.value_or(0);
    return experts;
  }

  absl::StatusOr<EndCost> ReadEnd(const YamlMap& top, absl::string_view key,
                                  bool reads_weights) {
    EndCost end;
    const Yaml* value = top.Find(key);
    if (value == nullptr) {
      return end;
    }
    MILLRACE_ASSIGN_OR_RETURN(const YamlMap map,
                              YamlMap::From(*value, object_, top.PathOf(key)));
    MILLRACE_RETURN_IF_ERROR(
        map.OnlyKeys({"weights", "bytes_per_token", "flops_per_token"}));
    MILLRACE_ASSIGN_OR_RETURN(end.weights_bytes, Required(map, "weights"));
    // An embedding is a look-up, a head is read whole.
    MILLRACE_ASSIGN_OR_RETURN(
        const int64_t bytes,
        map.SizeOr("bytes_per_token", reads_weights ? end.weights_bytes : 0));
    end.bytes_per_token = static_cast<double>(bytes);
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<double> flops,
                              map.NotNegative("flops_per_token"));
    end.flops_per_token = flops.value_or(0);
    return end;
  }

  const std::string object_;
};

}  // namespace

absl::StatusOr<ModelCosts> ParseCosts(absl::string_view text,
                                      absl::string_view object) {
  MILLRACE_ASSIGN_OR_RETURN(const Yaml document, ParseYaml(text, object));
  return ReadCosts(document, object, "");
}

absl::StatusOr<ModelCosts> ReadCosts(const Yaml& document,
                                     absl::string_view object,
                                     absl::string_view path) {
  return CostsReader(object).Read(document, path);
}

}  // namespace millrace::planner
