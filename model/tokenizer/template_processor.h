#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::model {

// Ids put around a text when special tokens are asked for.
struct Surroundings {
  std::vector<TokenId> front;
  std::vector<TokenId> back;
};

// The `post_processor` of a tokenizer.json for a single text; null: nothing.
// ByteLevel, which only moves offsets, is nothing. A component that is not
// supported is an InputError with its name.
absl::StatusOr<Surroundings> SurroundingsFromJson(const Json* value,
                                                  absl::string_view file);

}  // namespace millrace::model
