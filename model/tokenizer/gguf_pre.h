#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pre_tokenizer.h"

namespace millrace::model {

// What the id in tokenizer.ggml.pre stands for.
struct GgufPre {
  PreTokenizer pre_tokenizer;
  bool ignore_merges = false;
  bool nfc = false;      // the files do not mention it, the models want it
  bool add_bos = false;  // where the file does not say
};

// nullopt for an id that is not known, also "default" and none at all. An error
// is that of a pattern.
absl::StatusOr<std::optional<GgufPre>> FindGgufPre(absl::string_view id,
                                                   absl::string_view object);

}  // namespace millrace::model
