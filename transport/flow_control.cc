#include "transport/flow_control.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace millrace::transport {

absl::Status CreditWindow::Grant(uint32_t credits) {
  if (credits == 0 || credits > window_ - available_) {
    return MakeError(absl::StatusCode::kDataLoss, "channel",
                     absl::StrCat("the peer grants ", credits, " credits on ",
                                  available_, " of a window of ", window_));
  }
  available_ += credits;
  return absl::OkStatus();
}

}  // namespace millrace::transport
