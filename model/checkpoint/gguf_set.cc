#include "model/checkpoint/gguf_set.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace millrace::model {
namespace {

constexpr char kCountKey[] = "split.count";
constexpr char kNumberKey[] = "split.no";
constexpr char kTotalKey[] = "split.tensors.count";
// The number in a file name has five digits.
constexpr int64_t kPartsMax = 99'999;

struct PartName {
  std::string prefix;
  int64_t number = 0;  // from 1
  int64_t count = 0;
};

// PREFIX-%05d-of-%05d.gguf
std::optional<PartName> ParsePartName(const std::string& path) {
  constexpr size_t kTail = sizeof("-00001-of-00001.gguf") - 1;
  if (path.size() <= kTail) {
    return std::nullopt;
  }
  const absl::string_view tail =
      absl::string_view(path).substr(path.size() - kTail);
  PartName out;
  out.prefix = path.substr(0, path.size() - kTail);
  const bool digits =
      std::all_of(tail.begin() + 1, tail.begin() + 6, absl::ascii_isdigit) &&
      std::all_of(tail.begin() + 10, tail.begin() + 15, absl::ascii_isdigit);
  if (!digits || tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      tail.substr(15) != ".gguf" ||
      !absl::SimpleAtoi(tail.substr(1, 5), &out.number) ||
      !absl::SimpleAtoi(tail.substr(10, 5), &out.count)) {
    return std::nullopt;
  }
  return out;
}

std::string PartPath(const std::string& prefix, int64_t number, int64_t count) {
  return absl::StrFormat("%s-%05d-of-%05d.gguf", prefix, number, count);
}

absl::Status AddPart(const GgufFile& part,
                     std::unique_ptr<RandomAccessFile> file, WeightFiles& out) {
  const int32_t index = out.tensors.AddFile(part.path());
  out.files.push_back(std::move(file));
  out.header_bytes.push_back(part.header_bytes());
  for (const GgufTensor& stored : part.tensors()) {
    StoredTensor tensor;
    tensor.name = stored.name;
    tensor.shape.assign(stored.ne.rbegin(), stored.ne.rend());
    tensor.type = stored.type->name;
    tensor.format = stored.type->format;
    tensor.file_index = index;
    tensor.offset = stored.offset;
    tensor.bytes = stored.bytes;
    if (!out.tensors.Add(std::move(tensor))) {
      return InputError(Printable(part.path(), 512),
                        absl::StrCat("tensor '", Printable(stored.name),
                                     "' is in an earlier part too"));
    }
  }
  return absl::OkStatus();
}

// Opens part `number`, from 1, of `count`.
absl::Status OpenPart(const std::string& path, int64_t number, int64_t count,
                      WeightFiles& out) {
  MILLRACE_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(const auto part, GgufFile::Parse(*file));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t said,
                            part->Integer(kCountKey, 0, kPartsMax));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t place,
                            part->Integer(kNumberKey, 0, kPartsMax));
  if (said != count || place != number - 1) {
    return part->ErrorAt(
        kNumberKey,
        absl::StrCat("is part ", place + 1, " of ", said, " by its keys, part ",
                     number, " of ", count, " by its name"));
  }
  return AddPart(*part, std::move(file), out);
}

absl::Status OpenOtherParts(const std::string& path, int64_t count,
                            GgufSet& set) {
  const GgufFile& first = *set.first;
  const std::optional<PartName> name = ParsePartName(path);
  if (!name.has_value() || name->count != count) {
    return WithHint(
        first.ErrorAt(kCountKey,
                      absl::StrCat("is one of ", count,
                                   " parts, which its name does not say")),
        absl::StrFormat("name the parts PREFIX-00001-of-%05d.gguf and so on",
                        count));
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t place,
                            first.IntegerOr(kNumberKey, 0, kPartsMax, 0));
  if (name->number != 1 || place != 0) {
    return WithHint(
        first.ErrorAt(kNumberKey, absl::StrCat("is part ", place + 1, " of ",
                                               count, ", not the first")),
        absl::StrCat("give ", PartPath(name->prefix, 1, count)));
  }
  for (int64_t number = 2; number <= count; ++number) {
    MILLRACE_RETURN_IF_ERROR(OpenPart(PartPath(name->prefix, number, count),
                                      number, count, set.weights));
  }
  const int64_t total = static_cast<int64_t>(set.weights.tensors.all().size());
  MILLRACE_ASSIGN_OR_RETURN(const int64_t said,
                            first.IntegerOr(kTotalKey, 0, INT32_MAX, total));
  if (said != total) {
    return first.ErrorAt(kTotalKey,
                         absl::StrCat("says ", Counted(said, "tensor"),
                                      ", the parts hold ", total));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufSet> OpenGgufSet(const std::string& path) {
  GgufSet set;
  MILLRACE_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(set.first, GgufFile::Parse(*file));
  set.weights.tensors.set_table_path(path);
  MILLRACE_RETURN_IF_ERROR(AddPart(*set.first, std::move(file), set.weights));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                            set.first->IntegerOr(kCountKey, 0, kPartsMax, 1));
  if (count > 1) {
    MILLRACE_RETURN_IF_ERROR(OpenOtherParts(path, count, set));
  }
  return set;
}

}  // namespace millrace::model
