#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/tcp/tcp_layout.h"

namespace millrace::transport {

// Names one link of one epoch. Made by the coordinator, told to both ends over
// the control plane; whoever shows it is let in.
using LinkToken = std::array<std::byte, 16>;

// 128 bits from the kernel's generator.
LinkToken MakeLinkToken();

// What both ends of a TCP link must agree on.
struct TcpLinkOptions {
  uint64_t epoch = 0;
  uint32_t segment = 0;  // of the accepting end, in the route
  LinkToken token = {};
  int64_t frame_bytes_max = 0;
  uint32_t window = 4;  // 1 .. kTcpWindowMax posts of each kind, per end
};
// Bounds what a peer can make the other end reserve for credits.
inline constexpr uint32_t kTcpWindowMax = 1024;

// A decoded hello; every value as the peer wrote it.
struct Hello {
  HelloKind kind = HelloKind::kDial;
  HelloRefusal refusal = HelloRefusal::kNone;
  TcpLinkOptions link;
};

using HelloBytes = std::array<std::byte, HelloLayout::kBytes>;

HelloBytes EncodeHello(const Hello& hello);

// kDataLoss for what is no hello; kFailedPrecondition for another version.
absl::Status DecodeHello(const HelloBytes& bytes, Hello& hello);

// The accepting end's verdict on a dialer. Tokens are compared in constant
// time.
HelloRefusal JudgeHello(const Hello& hello, const TcpLinkOptions& expected);

// OK for kAccept that matches, else what the listener objects to.
absl::Status CheckAnswer(const Hello& answer, const TcpLinkOptions& expected);

}  // namespace millrace::transport
