#include "cli/commands.h"

namespace millrace::cli {

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  return commands;
}

}  // namespace millrace::cli
