// millrace inspect: what is in a checkpoint, and whether it is whole.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_host.h"
#include "cli/model_report.h"
#include "cli/planned_model.h"
#include "cli/sheet_report.h"
#include "cli/text_report.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/weights_check.h"
#include "model/spec/model_costs.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

class InspectCommand final : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "inspect"; }
  [[nodiscard]] const char* summary() const override {
    return "Show what is in a model, and check that it is whole";
  }
  [[nodiscard]] const char* example() const override {
    return "millrace inspect model.gguf --verify";
  }

  void Define(CLI::App& app) override {
    app.add_option("path", path_,
                   "Folder, .gguf file, or a lone config.json (also of "
                   "families that are planned for alone)")
        ->required();
    app.add_flag("--tensors", tensors_, "List every tensor");
    app.add_flag("--verify", verify_,
                 "Read every weight, the tokenizer and the template; exit code "
                 "3 when something is damaged");
  }

  absl::Status Run(Console& console) override {
    if (const std::string config = LoneConfig(path_); !config.empty()) {
      return InspectConfig(config, console);
    }
    MILLRACE_ASSIGN_OR_RETURN(const auto checkpoint, OpenCheckpoint(path_));
    json::object report = ModelReport(checkpoint->spec());
    json::array files;
    for (const std::string& file : checkpoint->files()) {
      files.emplace_back(file);
    }
    report["files"] = std::move(files);
    TextReport text = ReportText(*checkpoint, path_);
    report["tokenizer"] = std::move(text.tokenizer);
    report["chat_template"] = std::move(text.chat_template);
    if (tensors_) {
      report["tensors"] = TensorReport(checkpoint->spec(), checkpoint->files());
    }
    if (verify_) {
      MILLRACE_RETURN_IF_ERROR(
          Verify(*checkpoint, text.damage, console, report));
    }
    Show(report, console);
    if (!verify_ && !text.damage.empty()) {
      return AnswerIsNo(
          Printable(path_, 512),
          absl::StrCat("its ", text.damage.front().part,
                       " cannot be used: ", text.damage.front().why),
          "copy or download the files again");
    }
    if (verify_ && !report["ok"].get_bool()) {
      const size_t places = report["damage"].get_array().size();
      const json::object& first = report["damage"].get_array()[0].get_object();
      return AnswerIsNo(
          Printable(path_, 512),
          absl::StrCat("is damaged in ",
                       places == 1 ? "one place, "
                                   : absl::StrCat(places, " places, first "),
                       std::string(first.at("file").get_string()), ": ",
                       first.at("tensor").is_string()
                           ? std::string(first.at("tensor").get_string())
                           : std::string("file"),
                       ": ", std::string(first.at("why").get_string())),
          "copy or download the files again");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status InspectConfig(const std::string& path, Console& console) const {
    if (verify_) {
      return UsageError("--verify",
                        "needs the weights, this is a configuration alone");
    }
    MILLRACE_ASSIGN_OR_RETURN(const PlannedModel model, OpenPlannedModel(path));
    if (!model.runs) {
      return InspectSheet(model.sheet, console);
    }
    json::object report = ModelReport(model.spec);
    if (tensors_) {
      report["tensors"] = TensorReport(model.spec, {});
    }
    Show(report, console);
    return absl::OkStatus();
  }

  absl::Status InspectSheet(const planner::ModelSheet& sheet,
                            Console& console) const {
    if (tensors_) {
      return UsageError("--tensors",
                        "needs a family that millrace runs; of this one it "
                        "knows sizes alone");
    }
    const json::object report = SheetReport(sheet);
    if (console.json()) {
      console.OutJson(report);
    } else {
      console.Out(SheetReportText(report));
    }
    return absl::OkStatus();
  }

  static void Show(const json::object& report, Console& console) {
    if (console.json()) {
      console.OutJson(report);
    } else {
      console.Out(ModelReportText(report));
    }
  }

  // Adds `checks`, `ok` and `damage`.
  static absl::Status Verify(const model::Checkpoint& checkpoint,
                             const std::vector<TextDamage>& text,
                             Console& console, json::object& report);

  std::string path_;
  bool tensors_ = false;
  bool verify_ = false;
};

class Verification {
 public:
  void Add(const std::string& check, bool ok) {
    json::object entry;
    entry["check"] = check;
    entry["ok"] = ok;
    checks_.push_back(std::move(entry));
  }
  void Damage(const std::string& file, const std::string& tensor,
              const std::string& why) {
    json::object entry;
    entry["file"] = file;
    entry["tensor"] =
        tensor.empty() ? Json(nullptr) : Json(json::string(tensor));
    entry["why"] = why;
    damage_.push_back(std::move(entry));
  }
  void Finish(json::object& report) {
    report["ok"] = damage_.empty();
    report["checks"] = std::move(checks_);
    report["damage"] = std::move(damage_);
  }

 private:
  json::array checks_;
  json::array damage_;
};

absl::Status InspectCommand::Verify(const model::Checkpoint& checkpoint,
                                    const std::vector<TextDamage>& text,
                                    Console& console, json::object& report) {
  Verification out;
  out.Add("headers, shapes and places of all tensors", true);
  const int64_t total = model::CostsOf(checkpoint.spec()).stored_bytes;
  MILLRACE_ASSIGN_OR_RETURN(
      const model::WeightsCheck weights,
      model::CheckWeights(checkpoint, [&](int64_t done) {
        console.Progress(absl::StrCat("reading weights: ", HumanSize(done),
                                      " of ", HumanSize(total)));
        return Interrupts() == 0;
      }));
  console.Progress("");
  out.Add(absl::StrCat("values of ", Counted(weights.tensors, "tensor"), ", ",
                       Counted(weights.bytes, "byte")),
          weights.damage.empty());
  for (const model::WeightDamage& damage : weights.damage) {
    out.Damage(damage.file, damage.tensor, damage.why);
  }
  for (const char* part : {"tokenizer", "chat template"}) {
    const auto damage = std::find_if(
        text.begin(), text.end(),
        [&](const TextDamage& found) { return found.part == part; });
    const bool has = part == absl::string_view("tokenizer")
                         ? !report["tokenizer"].is_null()
                         : !report["chat_template"].is_null();
    if (has) {
      out.Add(part, damage == text.end());
    }
    if (damage != text.end()) {
      out.Damage(damage->file, "", damage->why);
    }
  }
  out.Finish(report);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() {
  return std::make_unique<InspectCommand>();
}

}  // namespace millrace::cli
