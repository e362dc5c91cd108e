#include "coordinator/simulation/load_report.h"

namespace millrace::coordinator {

bool LoadReport::MeetsLimits() const {
  constexpr int64_t kPercent = 99;
  return completed > 0 && failed() == 0 && good * 100 >= completed * kPercent;
}

double LoadReport::PerSecond(int64_t count) const {
  return duration > absl::ZeroDuration()
             ? static_cast<double>(count) / absl::ToDoubleSeconds(duration)
             : 0;
}

}  // namespace millrace::coordinator
