#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "boost/json/object.hpp"
#include "cli/commands.h"
#include "cli/deferred_engine.h"
#include "cli/model_host.h"
#include "cli/ready_event.h"
#include "cli/server_options.h"

namespace millrace::cli {
namespace {

class ServeCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "serve"; }
  [[nodiscard]] const char* summary() const override {
    return "Serve the OpenAI API from this process";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace serve model.gguf --port 8080";
  }
  void Define(CLI::App& app) override {
    app.add_option("MODEL", model_, "Model directory or GGUF file")->required();
    server_.Define(app, true);
    compute_.Define(app);
    sampling_.Define(app);
  }
  absl::Status Run(Console& console) override;

 private:
  std::string model_;
  ServerFlags server_;
  ComputeFlags compute_;
  SamplingFlags sampling_;
};

absl::Status ServeCommand::Run(Console& console) {
  MILLRACE_ASSIGN_OR_RETURN(ComputeOptions compute, Validate(compute_, false));
  MILLRACE_ASSIGN_OR_RETURN(ModelHost host,
                            OpenModel(model_, std::move(compute)));
  MILLRACE_ASSIGN_OR_RETURN(
      const SamplingChoice sampling,
      Validate(sampling_, host.checkpoint->generation_defaults()));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t sequences,
                            ServerSequences(host, true));
  // The listener first: a port in use or a key file that cannot be read must
  // not cost the loading of a model.
  DeferredEngine engine;
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<coordinator::ApiServer> server,
      StartApi(server_, ServedModelOf(host, sampling, server_, model_),
               engine));
  MILLRACE_RETURN_IF_ERROR(StartPipeline(host, sequences, nullptr, console));
  engine.Set(host.pipeline->engine());
  ReportReady(console, server->url(), {});
  ServeUntilInterrupted(*server, console);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeServeCommand() {
  return std::make_unique<ServeCommand>();
}

}  // namespace millrace::cli
