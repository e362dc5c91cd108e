#pragma once

#include <cstdint>
#include <span>

#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// Where a stage asks for the weights of experts. Resident weights answer at
// once; a store that streams from NVMe will answer when the records are in
// memory. Step thread only.
class ExpertStore {
 public:
  virtual ~ExpertStore() = default;
  // Leads loaded[i] to expert experts[i]; all stay valid until the next call.
  // The two are equally long.
  virtual void Acquire(const LoadedMoeFfn& layer,
                       std::span<const int32_t> experts,
                       std::span<const LoadedExpert*> loaded) = 0;
};

// All experts of the stage's layers are in memory.
class ResidentExpertStore final : public ExpertStore {
 public:
  void Acquire(const LoadedMoeFfn& layer, std::span<const int32_t> experts,
               std::span<const LoadedExpert*> loaded) override {
    for (size_t i = 0; i < experts.size(); ++i) {
      loaded[i] = &layer.experts[static_cast<size_t>(experts[i])];
    }
  }
};

}  // namespace millrace::worker
