#pragma once

namespace millrace::planner::report {

// The style sheet of a page: light, dark where the reader's system is, and
// light on paper.
extern const char kPageStyle[];

}  // namespace millrace::planner::report
