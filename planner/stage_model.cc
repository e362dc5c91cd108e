#include <algorithm>

#include "model/spec/model_costs.h"
#include "planner/placement.h"

namespace millrace::planner {

StageModel::StageModel(const model::ModelSpec& spec, const Cluster& cluster,
                       const PlanOptions& options)
    : spec_(spec),
      cluster_(cluster),
      options_(options),
      costs_(spec),
      need_(static_cast<size_t>((costs_.num_layers() + 1) *
                                (costs_.num_layers() + 1)),
            -1) {}

model::StageShape StageModel::Shape(int64_t begin, int64_t end, int64_t context,
                                    int64_t sequences) const {
  model::StageShape shape = options_.shape;
  shape.first_layer = begin;
  shape.last_layer = end - 1;
  shape.holds_embedding = begin == 0;
  shape.holds_head = end == num_layers();
  shape.context = context;
  shape.sequences = sequences;
  return shape;
}

int64_t StageModel::KvBytes(int64_t begin, int64_t end, int64_t context,
                            int64_t sequences) const {
  return model::StageKvBytes(spec_, Shape(begin, end, context, sequences));
}

int64_t StageModel::ScratchBytes(int64_t begin, int64_t end) const {
  return options_.process_bytes +
         model::StageScratchBytes(spec_,
                                  Shape(begin, end, options_.contexts[0], 1));
}

int64_t StageModel::KvBytesPerToken(int64_t begin, int64_t end) const {
  int64_t bytes = 0;
  for (int64_t layer = begin; layer < end; ++layer) {
    const model::LayerSpec& spec = spec_.layers[static_cast<size_t>(layer)];
    if (model::WindowOf(spec) == 0) {
      bytes += model::KvBytesPerToken(spec, options_.shape.kv);
    }
  }
  return bytes;
}

int64_t StageModel::Available(int64_t node) const {
  return cluster_.nodes[static_cast<size_t>(node)].memory_bytes -
         cluster_.reserve_bytes;
}

bool StageModel::Fits(int64_t node, int64_t begin, int64_t end) const {
  int64_t& need = need_[static_cast<size_t>(begin * (num_layers() + 1) + end)];
  if (need < 0) {
    need = costs_.WeightsBytes(begin, end) + ScratchBytes(begin, end) +
           KvBytes(begin, end, options_.contexts[0],
                   options_.concurrency.value_or(1));
  }
  return need <= Available(node);
}

std::optional<double> StageModel::Seconds(int64_t node, int64_t begin,
                                          int64_t end, int64_t rows) const {
  const Node& hardware = cluster_.nodes[static_cast<size_t>(node)];
  if (!hardware.memory_bandwidth.has_value() || !hardware.compute.has_value()) {
    return std::nullopt;
  }
  return costs_.BytesPerToken(begin, end) / *hardware.memory_bandwidth +
         static_cast<double>(rows) * costs_.FlopsPerToken(begin, end) /
             *hardware.compute;
}

}  // namespace millrace::planner
