#pragma once

#include <memory>

#include "cli/command.h"

namespace millrace::cli {

// `check PLAN`.
std::unique_ptr<Command> MakeCheckCommand();

}  // namespace millrace::cli
