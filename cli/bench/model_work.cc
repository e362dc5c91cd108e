#include "cli/bench/model_work.h"

#include <variant>

#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

using kernels::ComputeMode;

void AddMatrix(const model::Matrix& matrix, ComputeMode compute, double share,
               Work& work) {
  const kernels::Peak peak = kernels::PeakOf(compute, matrix.format);
  work.operations[static_cast<size_t>(peak)] +=
      2.0 * share * static_cast<double>(matrix.rows) *
      static_cast<double>(matrix.cols);
}

void Add(const model::AttentionOp& op, ComputeMode compute, Work& work) {
  for (const model::LinearSpec* linear : {&op.q, &op.k, &op.v, &op.o}) {
    AddMatrix(linear->weight, compute, 1, work);
  }
}

void Add(const model::DenseFfnOp& op, ComputeMode compute, Work& work) {
  for (const model::LinearSpec* linear : {&op.gate, &op.up, &op.down}) {
    AddMatrix(linear->weight, compute, 1, work);
  }
}

void Add(const model::MoeFfnOp& op, ComputeMode compute, Work& work) {
  AddMatrix(op.router, ComputeMode::kExact, 1, work);
  const double share = static_cast<double>(op.experts_per_token) /
                       static_cast<double>(op.experts.size());
  for (const model::ExpertSpec& expert : op.experts) {
    for (const model::Matrix* matrix :
         {&expert.gate, &expert.up, &expert.down}) {
      AddMatrix(*matrix, compute, share, work);
    }
  }
}

}  // namespace

double Work::total() const {
  double sum = 0;
  for (const double part : operations) {
    sum += part;
  }
  return sum;
}

Work& Work::operator+=(const Work& other) {
  for (size_t i = 0; i < operations.size(); ++i) {
    operations[i] += other.operations[i];
  }
  return *this;
}

Work& Work::operator*=(double factor) {
  for (double& part : operations) {
    part *= factor;
  }
  return *this;
}

Work LayerWork(const model::ModelSpec& spec, ComputeMode compute) {
  Work work;
  for (const model::LayerSpec& layer : spec.layers) {
    for (const model::Operation& operation : layer.operations) {
      std::visit([&](const auto& op) { Add(op, compute, work); }, operation);
    }
  }
  return work;
}

Work HeadWork(const model::ModelSpec& spec, ComputeMode compute) {
  Work work;
  AddMatrix(spec.head, compute, 1, work);
  return work;
}

Work AttentionWork(const model::ModelSpec& spec, int64_t num_keys) {
  Work work;
  for (const model::LayerSpec& layer : spec.layers) {
    work.operations[static_cast<size_t>(kernels::Peak::kFma)] +=
        model::AttentionOperations(layer, num_keys);
  }
  return work;
}

Work DecodeWork(const model::ModelSpec& spec, ComputeMode compute,
                int64_t num_keys) {
  Work work = LayerWork(spec, compute);
  work += HeadWork(spec, compute);
  work += AttentionWork(spec, num_keys);
  return work;
}

Work PrefillWork(const model::ModelSpec& spec, ComputeMode compute,
                 int64_t prompt_tokens) {
  Work work = LayerWork(spec, compute);
  work *= static_cast<double>(prompt_tokens);
  work += HeadWork(spec, compute);
  for (int64_t keys = 1; keys <= prompt_tokens; ++keys) {
    work += AttentionWork(spec, keys);
  }
  return work;
}

std::optional<double> CeilingOf(const Work& work, const MachineRates& rates) {
  double seconds = 0;
  for (size_t i = 0; i < work.operations.size(); ++i) {
    if (work.operations[i] == 0) {
      continue;
    }
    const std::optional<double> peak =
        rates.PeakFor(static_cast<kernels::Peak>(i));
    if (!peak.has_value()) {
      return std::nullopt;
    }
    seconds += work.operations[i] / *peak;
  }
  return seconds > 0 ? std::optional<double>(work.total() / seconds)
                     : std::nullopt;
}

bool HasExperts(const model::ModelSpec& spec) {
  for (const model::LayerSpec& layer : spec.layers) {
    for (const model::Operation& operation : layer.operations) {
      if (std::holds_alternative<model::MoeFfnOp>(operation)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace millrace::cli
