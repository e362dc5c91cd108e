#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/http/request_parser.h"

namespace millrace::coordinator {

// What one client may cost. Defaults suit a server on the open network.
struct HttpLimits {
  ParserLimits parser;

  // Bodies held for all connections together, read or being worked on; beyond
  // it a request is 503. 32 bodies of full size.
  int64_t bodies_bytes_max = int64_t{256} << 20;
  // Written but not yet taken by the client. A streamed answer of 10,000
  // tokens; a client further behind is not reading.
  int64_t output_bytes_max = int64_t{4} << 20;
  // Beyond it the connection that has been idle for longest makes room.
  int64_t connections_max = 1000;

  absl::Duration handshake = absl::Seconds(10);
  // From the first byte of a request to the end of its head, and from the
  // opening of a connection to its first byte.
  absl::Duration head = absl::Seconds(30);
  // For a body, plus one second for each 64 KiB that have come.
  absl::Duration body = absl::Seconds(30);
  // Between requests: agents think for minutes.
  absl::Duration idle = absl::Minutes(30);
  // Without progress of an answer that waits to be taken.
  absl::Duration write_stall = absl::Minutes(5);
  // After the last answer, for what the client has still sent.
  absl::Duration linger = absl::Seconds(2);
  // Silence of a streamed answer until the filler is sent; proxies give up
  // after 50 seconds.
  absl::Duration filler_after = absl::Seconds(10);
  // How often deadlines are looked at.
  absl::Duration sweep_every = absl::Milliseconds(500);
};

}  // namespace millrace::coordinator
