#include "cli/commands.h"

#include "cli/check/check_command.h"

namespace millrace::cli {

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeRunCommand());
  commands.push_back(MakeChatCommand());
  commands.push_back(MakeServeCommand());
  commands.push_back(MakeUpCommand());
  commands.push_back(MakeCoordinatorCommand());
  commands.push_back(MakeStageWorkerCommand());
  commands.push_back(MakePlanCommand());
  commands.push_back(MakeSimulateCommand());
  commands.push_back(MakeProbeCommand());
  commands.push_back(MakeCheckCommand());
  commands.push_back(MakeInspectCommand());
  commands.push_back(MakeTokenizeCommand());
  commands.push_back(MakeRenderCommand());
  commands.push_back(MakeEvalCommand());
  commands.push_back(MakeBenchCommand());
  return commands;
}

}  // namespace millrace::cli
