#include "planner/costs_check.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::planner {
namespace {

// Adds up one field over layers and ends.
class Sum {
 public:
  explicit Sum(const char* field) : field_(field) {}
  void Add(int64_t bytes) {
    negative_ = negative_ || bytes < 0;
    sum_ += bytes;
  }
  [[nodiscard]] absl::Status Check(absl::string_view object) const {
    if (negative_) {
      return InputError(object, absl::StrCat(field_, ": is below 0"),
                        "give 0 or more");
    }
    if (sum_ > std::numeric_limits<int64_t>::max()) {
      return InputError(object,
                        absl::StrCat("layers: ", field_,
                                     " of all layers together is 2^63 bytes "
                                     "or more"),
                        "look for a wrong unit");
    }
    return absl::OkStatus();
  }

 private:
  const char* field_;
  absl::int128 sum_ = 0;
  bool negative_ = false;
};

absl::Status CheckVariety(const ModelCosts& costs, absl::string_view object) {
  std::set<std::pair<int64_t, int64_t>> experts;
  std::set<std::string> formats;
  for (const LayerCost& layer : costs.layers) {
    if (layer.experts.count > 0) {
      experts.emplace(layer.experts.count, layer.experts.used);
    }
    formats.insert(layer.format);
    if (experts.size() > kExpertClassesMax) {
      return InputError(
          object,
          absl::StrCat("layers.experts: more than ", kExpertClassesMax,
                       " different pairs of count and used"),
          "count experts that are used alike as one kind");
    }
    if (formats.size() > kFormatsMax) {
      return InputError(object,
                        absl::StrCat("layers.format: more than ", kFormatsMax,
                                     " different formats"),
                        "name those that nodes have a rate of their own for");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCosts(const ModelCosts& costs, absl::string_view object) {
  if (costs.layers.empty() ||
      costs.layers.size() > static_cast<size_t>(kLayersMax)) {
    return InputError(object,
                      absl::StrCat("layers: ", costs.layers.size(),
                                   " is not from 1 to ", kLayersMax),
                      "give the layers of one model");
  }
  Sum weights("weights");
  Sum kv("kv_per_token");
  Sum state("state_per_sequence");
  for (const LayerCost& layer : costs.layers) {
    weights.Add(layer.weights_bytes);
    kv.Add(layer.kv_per_token);
    state.Add(layer.state_per_sequence);
  }
  weights.Add(costs.first.weights_bytes);
  weights.Add(costs.last.weights_bytes);
  for (const Sum* sum : {&weights, &kv, &state}) {
    if (absl::Status status = sum->Check(object); !status.ok()) {
      return status;
    }
  }
  if (costs.shared_weights_bytes < 0 ||
      costs.shared_weights_bytes > costs.last.weights_bytes) {
    return InputError(object,
                      "shared_weights_bytes: is more than the weights of last",
                      "give the part of last that first holds too");
  }
  return CheckVariety(costs, object);
}

}  // namespace millrace::planner
