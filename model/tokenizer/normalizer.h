#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/tokenizer/marked_text.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode_form.h"

namespace millrace::model {

// Rewrites text before it is cut into words. Immutable once built; any thread.
class Normalizer {
 public:
  // The `normalizer` of a tokenizer.json; null means none. A component that is
  // not supported is an InputError with its name.
  static absl::StatusOr<Normalizer> FromJson(const Json* value,
                                             absl::string_view file);

  Normalizer() = default;
  void AddUnicodeForm(UnicodeForm form);
  void AddPrepend(absl::string_view text);
  void AddReplace(std::unique_ptr<Pattern> pattern, absl::string_view content);

  [[nodiscard]] bool empty() const { return steps_.empty(); }

  // Errors are those of Pattern.
  [[nodiscard]] absl::StatusOr<MarkedText> Apply(MarkedText text) const;

 private:
  enum class Kind { kForm, kLowercase, kPrepend, kReplace, kStrip };
  struct Step {
    Kind kind;
    UnicodeForm form = UnicodeForm::kNfc;
    std::string content{};               // of kPrepend and kReplace
    std::unique_ptr<Pattern> pattern{};  // of kReplace
    bool left = false, right = false;    // of kStrip
  };

  absl::Status AddJson(const Json& value, absl::string_view file,
                       absl::string_view path);
  static absl::StatusOr<MarkedText> Run(const Step& step, MarkedText text);

  std::vector<Step> steps_;
};

}  // namespace millrace::model
