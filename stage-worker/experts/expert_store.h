#pragma once

#include <cstdint>

#include "stage-worker/runtime/weights.h"

namespace millrace::worker {

// Where a stage asks for the weights of an expert. Resident weights answer at
// once; a store that streams from NVMe will answer when the record is in
// memory. Step thread only.
class ExpertStore {
 public:
  virtual ~ExpertStore() = default;
  // Valid until the next call for the same MoE layer.
  virtual const LoadedExpert& Acquire(const LoadedMoeFfn& layer,
                                      int64_t expert) = 0;
};

// All experts of the stage's layers are in memory.
class ResidentExpertStore final : public ExpertStore {
 public:
  const LoadedExpert& Acquire(const LoadedMoeFfn& layer,
                              int64_t expert) override {
    return layer.experts[static_cast<size_t>(expert)];
  }
};

}  // namespace millrace::worker
