#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/channel.h"

namespace millrace::transport {

// A frame buffer in ordinary memory, `bytes_max` large, 64-byte aligned.
// Untouched pages cost nothing, so a large limit is cheap where frames are
// small.
std::unique_ptr<FrameBuffer> MakeHeapFrameBuffer(int64_t bytes_max);

}  // namespace millrace::transport
