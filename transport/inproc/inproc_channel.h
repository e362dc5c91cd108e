#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/channel.h"

namespace millrace::transport {

struct InProcOptions {
  int64_t frame_bytes_max = 0;
  uint32_t window = 4;  // posts of each kind that one end may have outstanding
};

// The two ends of a link inside one process. Frames are not copied: the posted
// send buffer and the posted receive buffer change hands. One thread serves
// both ends and sleeps while nothing happens; it ends when both ends are gone.
// An end must not be destroyed by one of its pair's callbacks.
std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>> MakeInProcPair(
    const InProcOptions& options);

}  // namespace millrace::transport
