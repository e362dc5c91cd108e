#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "model/chat/chat_template.h"
#include "model/chat/prompt.h"

namespace millrace::model {

// The clock of the reference cases.
inline absl::Time ReferenceTime() {
  return absl::FromCivil(absl::CivilSecond(2026, 3, 4, 5, 6, 7),
                         absl::LocalTimeZone());
}

inline absl::StatusOr<std::vector<TextSegment>> RenderSegments(
    absl::string_view source, const Json& input,
    const RenderLimits& limits = {}) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<ChatTemplate> compiled,
                            ChatTemplate::Compile(source, "template"));
  return compiled->Render(input, ReferenceTime(), limits);
}

inline absl::StatusOr<std::string> RenderText(absl::string_view source,
                                              const Json& input,
                                              const RenderLimits& limits = {}) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<TextSegment> segments,
                            RenderSegments(source, input, limits));
  return JoinSegments(segments);
}

}  // namespace millrace::model
