#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/checkpoint/checkpoint.h"

namespace millrace::cli {

// What is wrong with one of the parts below.
struct TextDamage {
  std::string part;  // "tokenizer" or "chat template"
  std::string file;
  std::string why;
};

// What a model has for text, as `inspect` shows it: both parts are made as
// `run` and `serve` make them, so that damage shows before they meet it.
struct TextReport {
  // {kind, file (tokenizer.json) or pattern (GGUF), tokens, error}; null where
  // there is none. `tokens` is null where it cannot be told.
  Json tokenizer;
  // {bytes, error}; null where there is none.
  Json chat_template;
  std::vector<TextDamage> damage;
};
// `path` is the checkpoint's, for errors of its template.
TextReport ReportText(const model::Checkpoint& checkpoint,
                      const std::string& path);

}  // namespace millrace::cli
