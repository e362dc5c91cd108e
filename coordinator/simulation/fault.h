#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace millrace::coordinator {

enum class FaultKind {
  kLost,     // the node's process ends: its links break at once
  kStalled,  // it stops without a word: found out when its lease ends
  kSlow,     // node or link takes longer by a factor
  kCut,      // the link breaks
  kBack,     // node or link is as at the start
};

// Something that happens to a simulated pipeline.
struct Fault {
  absl::Duration at;
  FaultKind kind = FaultKind::kBack;
  int64_t node = 0;    // index into the pipeline's nodes
  int64_t other = -1;  // the link between it and `node`; -1: the node itself
  double factor = 1;   // kSlow: > 0
};

}  // namespace millrace::coordinator
