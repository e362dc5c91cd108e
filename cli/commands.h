#pragma once

#include <memory>
#include <vector>

#include "cli/command.h"

namespace millrace::cli {

// One maker per command; each is defined in the file of its command.
std::unique_ptr<Command> MakeInspectCommand();
std::unique_ptr<Command> MakeTokenizeCommand();
std::unique_ptr<Command> MakeRenderCommand();
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeBenchBatchCommand();
std::unique_ptr<Command> MakeBenchDecodeCommand();
std::unique_ptr<Command> MakeBenchKernelsCommand();
std::unique_ptr<Command> MakeBenchPrefillCommand();
std::unique_ptr<Command> MakeChatCommand();
std::unique_ptr<Command> MakeCoordinatorCommand();
std::unique_ptr<Command> MakeEvalCommand();
std::unique_ptr<Command> MakePlanCommand();
std::unique_ptr<Command> MakeProbeCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeServeCommand();
std::unique_ptr<Command> MakeSimulateCommand();
std::unique_ptr<Command> MakeStageWorkerCommand();
std::unique_ptr<Command> MakeUpCommand();

// All of them, in the order of --help.
std::vector<std::unique_ptr<Command>> MakeCommands();

}  // namespace millrace::cli
