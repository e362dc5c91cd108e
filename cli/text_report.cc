#include "cli/text_report.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "boost/json/object.hpp"
#include "model/chat/chat_template.h"
#include "model/tokenizer/gguf_vocabulary.h"
#include "model/tokenizer/open.h"

namespace millrace::cli {
namespace {

namespace json = boost::json;

Json ErrorOf(const absl::Status& status) {
  return status.ok() ? Json(nullptr)
                     : Json(json::string(std::string(status.message())));
}

void Note(const std::string& part, const std::string& file,
          const absl::Status& status, TextReport& report) {
  if (!status.ok()) {
    report.damage.push_back({part, file, std::string(status.message())});
  }
}

void AddTokenizer(const model::Checkpoint& checkpoint, TextReport& report) {
  const std::string* path = checkpoint.tokenizer_json_path();
  const model::GgufVocabulary* vocabulary = checkpoint.gguf_vocabulary();
  if (path == nullptr && vocabulary == nullptr) {
    return;
  }
  json::object out;
  if (path != nullptr) {
    out["kind"] = "tokenizer.json";
    out["file"] = *path;
  } else {
    out["kind"] = absl::StrCat("gguf ", Printable(vocabulary->model));
    out["pattern"] = Printable(vocabulary->pre);
  }
  const absl::StatusOr<std::unique_ptr<model::Tokenizer>> tokenizer =
      model::TokenizerOf(checkpoint);
  out["tokens"] = tokenizer.ok() && *tokenizer != nullptr
                      ? Json((*tokenizer)->vocab_size())
                      : Json(nullptr);
  out["error"] = ErrorOf(tokenizer.status());
  Note("tokenizer", path != nullptr ? *path : checkpoint.files().front(),
       tokenizer.status(), report);
  report.tokenizer = std::move(out);
}

void AddTemplate(const model::Checkpoint& checkpoint, const std::string& path,
                 TextReport& report) {
  const std::string* source = checkpoint.chat_template();
  if (source == nullptr) {
    return;
  }
  const absl::Status status =
      model::ChatTemplate::Compile(*source,
                                   absl::StrCat(path, ": chat template"))
          .status();
  json::object out;
  out["bytes"] = static_cast<int64_t>(source->size());
  out["error"] = ErrorOf(status);
  Note("chat template", path, status, report);
  report.chat_template = std::move(out);
}

}  // namespace

TextReport ReportText(const model::Checkpoint& checkpoint,
                      const std::string& path) {
  TextReport report;
  AddTokenizer(checkpoint, report);
  AddTemplate(checkpoint, path, report);
  return report;
}

}  // namespace millrace::cli
