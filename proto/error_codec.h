#pragma once

#include "absl/status/status.h"
#include "millrace/control/v1/control.pb.h"

namespace millrace::control {

// A status with its kind, object and hint. `status` is not OK.
v1::Error EncodeError(const absl::Status& status);

// Never OK; text is cut and made printable, an unknown code becomes kInternal.
absl::Status DecodeError(const v1::Error& error);

}  // namespace millrace::control
