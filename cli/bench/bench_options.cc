#include "cli/bench/bench_options.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "cli/number_checks.h"
#include "cli/number_list.h"

namespace millrace::cli {
namespace {

using kernels::ComputeMode;
using kernels::WeightFormat;

// Reads names between commas, each known to `find(name)`, none twice.
template <typename Value, typename Find>
absl::StatusOr<std::vector<Value>> ParseNames(absl::string_view option,
                                              const std::string& text,
                                              const std::string& known,
                                              const Find& find) {
  std::vector<Value> values;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const std::optional<Value> value = find(name);
    if (!value.has_value()) {
      return UsageError(option,
                        absl::StrCat("'", Printable(name), "' is not known"),
                        absl::StrCat("give some of ", known));
    }
    if (std::find(values.begin(), values.end(), *value) != values.end()) {
      return UsageError(option, absl::StrCat("'", name, "' is given twice"));
    }
    values.push_back(*value);
  }
  return values;
}

}  // namespace

absl::StatusOr<int> MeasuringThreads(const std::optional<int64_t>& asked) {
  const int64_t cores =
      std::max<int64_t>(1, std::thread::hardware_concurrency());
  const int64_t threads = asked.value_or(cores);
  if (threads < 1 || threads > cores) {
    return UsageError(
        "--threads",
        absl::StrCat(threads, " is out of range: this process may use ",
                     Counted(cores, "core")),
        absl::StrCat("give a number from 1 to ", cores, ", or leave it out"));
  }
  return static_cast<int>(threads);
}

absl::StatusOr<std::vector<int64_t>> ParseCounts(absl::string_view option,
                                                 const std::string& text,
                                                 int64_t most) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> counts,
                            ParseNumberList(text, option, "number"));
  if (counts.empty()) {
    return UsageError(option, "holds no number",
                      "give numbers with commas between them");
  }
  for (const int64_t count : counts) {
    MILLRACE_RETURN_IF_ERROR(CheckCount(option, count, 1, most));
  }
  return counts;
}

absl::StatusOr<std::vector<WeightFormat>> ParseFormats(
    const std::string& text) {
  std::vector<WeightFormat> all;
  std::string names;
  for (int i = 0; i < kernels::kNumWeightFormats; ++i) {
    all.push_back(static_cast<WeightFormat>(i));
    absl::StrAppend(&names, i == 0 ? "" : ",",
                    kernels::TraitsOf(all.back()).name);
  }
  if (text.empty()) {
    return all;
  }
  return ParseNames<WeightFormat>(
      "--format", text, names,
      [&](absl::string_view name) -> std::optional<WeightFormat> {
        for (const WeightFormat format : all) {
          if (name == kernels::TraitsOf(format).name) {
            return format;
          }
        }
        return std::nullopt;
      });
}

absl::StatusOr<std::vector<ComputeMode>> ParseComputes(
    const std::string& text) {
  return ParseNames<ComputeMode>(
      "--compute", text, "fast,exact",
      [](absl::string_view name) -> std::optional<ComputeMode> {
        for (const ComputeMode mode :
             {ComputeMode::kFast, ComputeMode::kExact}) {
          if (name == ComputeName(mode)) {
            return mode;
          }
        }
        return std::nullopt;
      });
}

const char* ComputeName(ComputeMode compute) {
  return compute == ComputeMode::kExact ? "exact" : "fast";
}

}  // namespace millrace::cli
