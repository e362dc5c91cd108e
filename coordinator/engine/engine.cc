#include "coordinator/engine/engine.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::coordinator {
namespace {

constexpr char kRetryAfterPayload[] = "millrace/retry-after";
// Said where the status carries nothing: soon enough to be of use, rare enough
// to shed load.
constexpr int64_t kRetryAfterDefault = 5;

}  // namespace

int64_t RetryAfterOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(kRetryAfterPayload);
  int64_t seconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &seconds)) {
    return kRetryAfterDefault;
  }
  return seconds;
}

absl::Status QueueFull(absl::string_view what, int64_t retry_after_seconds) {
  const int64_t seconds = std::max<int64_t>(1, retry_after_seconds);
  absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, "queue", what,
                absl::StrCat("try again in ", seconds, " s"));
  status.SetPayload(kRetryAfterPayload, absl::Cord(absl::StrCat(seconds)));
  return status;
}

}  // namespace millrace::coordinator
