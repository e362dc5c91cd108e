#include "coordinator/api/utf8.h"

#include <algorithm>

namespace millrace::coordinator {
namespace {

struct Step {
  size_t bytes = 1;
  bool well_formed = false;
};

struct Lead {
  size_t length = 0;  // 0: can lead nothing
  uint8_t second_low = 0x80;
  uint8_t second_high = 0xBF;
};

Lead LeadOf(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {.length = 2};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {.length = 3,
            .second_low = static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            .second_high = static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {.length = 4,
            .second_low = static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            .second_high = static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {};
}

// The sequence, or the maximal ill-formed part, at the front of `rest`.
Step Next(absl::string_view rest) {
  const auto first = static_cast<uint8_t>(rest[0]);
  if (first < 0x80) {
    return {1, true};
  }
  const Lead lead = LeadOf(first);
  if (lead.length == 0) {
    return {1, false};
  }
  size_t at = 1;
  for (; at < std::min(lead.length, rest.size()); ++at) {
    const auto byte = static_cast<uint8_t>(rest[at]);
    const uint8_t low = at == 1 ? lead.second_low : 0x80;
    const uint8_t high = at == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) {
      break;
    }
  }
  return {at, at == lead.length};
}

}  // namespace

std::string WellFormed(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Step step = Next(bytes);
    if (step.well_formed) {
      out.append(bytes.data(), step.bytes);
    } else {
      out.append("\xEF\xBF\xBD");
    }
    bytes.remove_prefix(step.bytes);
  }
  return out;
}

bool IsWellFormed(absl::string_view bytes) {
  while (!bytes.empty()) {
    const Step step = Next(bytes);
    if (!step.well_formed) {
      return false;
    }
    bytes.remove_prefix(step.bytes);
  }
  return true;
}

int64_t CodePoints(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<uint8_t>(letter) & 0xC0) != 0x80;
  });
}

}  // namespace millrace::coordinator
