#include "transport/tcp/tcp_handshake.h"

#include <sys/random.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "transport/byte_order.h"

namespace millrace::transport {
namespace {

bool SameToken(const LinkToken& a, const LinkToken& b) {
  std::byte difference{0};
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= a[i] ^ b[i];
  }
  return difference == std::byte{0};
}

bool SamePlan(const TcpLinkOptions& a, const TcpLinkOptions& b) {
  return a.epoch == b.epoch && a.segment == b.segment &&
         a.frame_bytes_max == b.frame_bytes_max;
}

bool WindowInRange(uint32_t window) {
  return window >= 1 && window <= kTcpWindowMax;
}

absl::Status Handshake(absl::StatusCode code, absl::string_view what,
                       absl::string_view hint = "") {
  return MakeError(code, "link handshake", what, hint);
}

}  // namespace

LinkToken MakeLinkToken() {
  LinkToken token;
  // Blocks until the kernel is seeded and then gives all of so few bytes.
  MILLRACE_CHECK(getrandom(token.data(), token.size(), 0) ==
                 static_cast<ssize_t>(token.size()));
  return token;
}

HelloBytes EncodeHello(const Hello& hello) {
  using L = HelloLayout;
  HelloBytes bytes = {};
  StoreLe<uint32_t>(&bytes[L::kMagic], kHelloMagic);
  StoreLe<uint16_t>(&bytes[L::kVersion], kLinkWireVersion);
  StoreLe<uint16_t>(&bytes[L::kKind], static_cast<uint16_t>(hello.kind));
  StoreLe<uint64_t>(&bytes[L::kEpoch], hello.link.epoch);
  StoreLe<uint32_t>(&bytes[L::kSegment], hello.link.segment);
  StoreLe<uint32_t>(&bytes[L::kWindow], hello.link.window);
  StoreLe<uint64_t>(&bytes[L::kFrameBytesMax],
                    static_cast<uint64_t>(hello.link.frame_bytes_max));
  std::copy(hello.link.token.begin(), hello.link.token.end(),
            bytes.begin() + L::kToken);
  StoreLe<uint32_t>(&bytes[L::kRefusal], static_cast<uint32_t>(hello.refusal));
  StoreLe<uint32_t>(&bytes[L::kCrc], Crc32c(0, bytes.data(), L::kCrc));
  return bytes;
}

absl::Status DecodeHello(const HelloBytes& bytes, Hello& hello) {
  using L = HelloLayout;
  if (LoadLe<uint32_t>(&bytes[L::kMagic]) != kHelloMagic ||
      LoadLe<uint32_t>(&bytes[L::kCrc]) != Crc32c(0, bytes.data(), L::kCrc)) {
    return Handshake(absl::StatusCode::kDataLoss,
                     "the peer does not speak this protocol");
  }
  const uint16_t version = LoadLe<uint16_t>(&bytes[L::kVersion]);
  if (version != kLinkWireVersion) {
    return Handshake(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("the peer speaks link version ", version,
                                  ", this program ", kLinkWireVersion),
                     "run the same version of millrace on every node");
  }
  const uint16_t kind = LoadLe<uint16_t>(&bytes[L::kKind]);
  const uint32_t refusal = LoadLe<uint32_t>(&bytes[L::kRefusal]);
  const uint64_t frame_bytes_max = LoadLe<uint64_t>(&bytes[L::kFrameBytesMax]);
  hello.link.epoch = LoadLe<uint64_t>(&bytes[L::kEpoch]);
  hello.link.segment = LoadLe<uint32_t>(&bytes[L::kSegment]);
  hello.link.window = LoadLe<uint32_t>(&bytes[L::kWindow]);
  if (kind < static_cast<uint16_t>(HelloKind::kDial) ||
      kind > static_cast<uint16_t>(HelloKind::kRefuse) ||
      refusal > static_cast<uint32_t>(HelloRefusal::kPlan) ||
      LoadLe<uint64_t>(&bytes[L::kReserved]) != 0 ||
      frame_bytes_max > static_cast<uint64_t>(INT64_MAX) ||
      !WindowInRange(hello.link.window)) {
    return Handshake(absl::StatusCode::kDataLoss, "a field is out of range");
  }
  hello.kind = static_cast<HelloKind>(kind);
  hello.refusal = static_cast<HelloRefusal>(refusal);
  hello.link.frame_bytes_max = static_cast<int64_t>(frame_bytes_max);
  std::copy_n(bytes.begin() + L::kToken, hello.link.token.size(),
              hello.link.token.begin());
  return absl::OkStatus();
}

HelloRefusal JudgeHello(const Hello& hello, const TcpLinkOptions& expected) {
  if (hello.kind != HelloKind::kDial ||
      !SameToken(hello.link.token, expected.token)) {
    return HelloRefusal::kToken;
  }
  return SamePlan(hello.link, expected) ? HelloRefusal::kNone
                                        : HelloRefusal::kPlan;
}

absl::Status CheckAnswer(const Hello& answer, const TcpLinkOptions& expected) {
  if (answer.kind == HelloKind::kDial) {
    return Handshake(absl::StatusCode::kDataLoss, "the peer dials as well");
  }
  if (answer.kind == HelloKind::kAccept) {
    return SamePlan(answer.link, expected) &&
                   SameToken(answer.link.token, expected.token)
               ? absl::OkStatus()
               : Handshake(absl::StatusCode::kDataLoss,
                           "the peer accepts another link");
  }
  switch (answer.refusal) {
    case HelloRefusal::kVersion:
      return Handshake(absl::StatusCode::kFailedPrecondition,
                       "the peer speaks another link version",
                       "run the same version of millrace on every node");
    case HelloRefusal::kToken:
      return Handshake(absl::StatusCode::kAborted,
                       "the peer expects another link");
    case HelloRefusal::kPlan:
      return Handshake(absl::StatusCode::kAborted,
                       "the peer holds another plan");
    case HelloRefusal::kNone:
      break;
  }
  return Handshake(absl::StatusCode::kDataLoss, "refused without a reason");
}

}  // namespace millrace::transport
