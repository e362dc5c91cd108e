#pragma once

#include <memory>
#include <vector>

#include "cli/command.h"

namespace millrace::cli {

// One maker per command; each is defined in the file of its command.
std::unique_ptr<Command> MakeTokenizeCommand();

// All of them, in the order of --help.
std::vector<std::unique_ptr<Command>> MakeCommands();

}  // namespace millrace::cli
