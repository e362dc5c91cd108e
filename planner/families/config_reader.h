#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace millrace::planner {

// Largest values of sizes that have no name of their own among the limits of
// checkpoints (model/checkpoint/decoder_config.h).
inline constexpr int64_t kRankMax = int64_t{1} << 16;
inline constexpr int64_t kTapsMax = 64;

// Reads the sizes of one config.json and remembers the first error, so that a
// family's reader is a list of keys: check status() before the sizes are used.
// After an error every answer is the smallest one allowed.
class ConfigReader {
 public:
  // `object`: the file's name, for errors. `whole`: all of it. `text`: the
  // object with the sizes of the language model, the same or one inside.
  ConfigReader(std::string object, const JsonObject& whole,
               const JsonObject& text)
      : object_(std::move(object)), whole_(whole), text_(text) {}

  [[nodiscard]] const std::string& object() const { return object_; }

  [[nodiscard]] const JsonObject& whole() const { return whole_; }
  [[nodiscard]] const JsonObject& text() const { return text_; }
  [[nodiscard]] const absl::Status& status() const { return status_; }

  // A required whole number in [1, high].
  int64_t Need(absl::string_view key, int64_t high);
  // The same under the first of these keys that is there.
  int64_t NeedAny(std::initializer_list<absl::string_view> keys, int64_t high);
  // A whole number in [low, high], or `otherwise` where the key is missing.
  int64_t Or(absl::string_view key, int64_t low, int64_t high,
             int64_t otherwise);
  double NumberOr(absl::string_view key, double low, double high,
                  double otherwise);
  bool Flag(absl::string_view key, bool otherwise);
  // Also in the file around the text model.
  bool FlagOfEither(absl::string_view key, bool otherwise);

  // Whether each of `num_layers` layers is of the kind `name` in the list of
  // names `key`, whose other names are in `others`.
  std::vector<bool> LayersOfKind(
      absl::string_view key, int64_t num_layers, absl::string_view name,
      std::initializer_list<absl::string_view> others);
  // Whether each of `num_layers` layers is in the list of layer numbers `key`
  // of `object`, which count from `first`.
  std::vector<bool> LayersInList(const JsonObject& object,
                                 absl::string_view key, int64_t num_layers,
                                 int64_t first);
  // An object inside the text model's; the text model's own after an error.
  JsonObject Section(absl::string_view key);
  // A required whole number in [1, high] of a section.
  int64_t NeedIn(const JsonObject& section, absl::string_view key,
                 int64_t high);

  // Remembers an error found by the caller.
  void Fail(absl::string_view key, absl::string_view what);

 private:
  template <typename T>
  T Take(absl::StatusOr<T> value, T otherwise);

  const std::string object_;
  const JsonObject& whole_;
  const JsonObject& text_;
  absl::Status status_;
};

}  // namespace millrace::planner
