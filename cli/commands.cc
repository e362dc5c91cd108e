#include "cli/commands.h"

namespace millrace::cli {

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeTokenizeCommand());
  return commands;
}

}  // namespace millrace::cli
