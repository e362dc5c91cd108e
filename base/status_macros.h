#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` from the enclosing function unless it is
// OK.
#define MILLRACE_RETURN_IF_ERROR(expression)          \
  do {                                                \
    if (absl::Status millrace_status_ = (expression); \
        !millrace_status_.ok()) {                     \
      return millrace_status_;                        \
    }                                                 \
  } while (false)

// Evaluates a StatusOr; returns its status on failure, else moves the value
// into `target`, which may be a declaration.
#define MILLRACE_ASSIGN_OR_RETURN(target, expression)                \
  MILLRACE_STATUS_ASSIGN_IMPL_(                                      \
      MILLRACE_STATUS_CONCAT_(millrace_statusor_, __LINE__), target, \
      expression)

// NOLINTBEGIN(bugprone-macro-parentheses): `statusor` and `target` are names
// and declarations, which parentheses would break.
#define MILLRACE_STATUS_ASSIGN_IMPL_(statusor, target, expression) \
  auto statusor = (expression);                                    \
  if (!statusor.ok()) {                                            \
    return std::move(statusor).status();                           \
  }                                                                \
  target = std::move(statusor).value()

// NOLINTEND(bugprone-macro-parentheses)

#define MILLRACE_STATUS_CONCAT_INNER_(a, b) a##b
#define MILLRACE_STATUS_CONCAT_(a, b) MILLRACE_STATUS_CONCAT_INNER_(a, b)
