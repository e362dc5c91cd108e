#include "tests/golden/tensor_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::testing {
namespace {

constexpr int64_t kBytesMax = int64_t{1} << 26;

absl::StatusOr<ReferenceTensor> ReadEntry(const JsonObject& entry,
                                          absl::string_view body) {
  ReferenceTensor tensor;
  int64_t count = 1;
  for (const Json& size : entry.raw().at("shape").as_array()) {
    tensor.shape.push_back(size.to_number<int64_t>());
    count *= tensor.shape.back();
  }
  const auto& offsets = entry.raw().at("data_offsets").as_array();
  const auto begin = offsets.at(0).to_number<uint64_t>();
  const auto end = offsets.at(1).to_number<uint64_t>();
  MILLRACE_ASSIGN_OR_RETURN(const std::string dtype, entry.String("dtype"));
  if (begin > end || end > body.size() ||
      end - begin != static_cast<uint64_t>(count) * 4) {
    return absl::InvalidArgumentError("wrong offsets");
  }
  const char* data = body.data() + begin;
  if (dtype == "F32") {
    tensor.floats.resize(static_cast<size_t>(count));
    std::memcpy(tensor.floats.data(), data, end - begin);
  } else if (dtype == "I32") {
    tensor.integers.resize(static_cast<size_t>(count));
    std::memcpy(tensor.integers.data(), data, end - begin);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("dtype ", dtype));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<std::map<std::string, ReferenceTensor>> ReadTensorFile(
    const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kBytesMax));
  uint64_t size = 0;
  if (file.size() < sizeof(size)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": too short"));
  }
  std::memcpy(&size, file.data(), sizeof(size));
  if (size > file.size() - sizeof(size)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cut short"));
  }
  const absl::string_view header(file.data() + sizeof(size), size);
  const absl::string_view body =
      absl::string_view(file).substr(sizeof(size) + size);
  MILLRACE_ASSIGN_OR_RETURN(const Json json, ParseJson(header, path));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject all, JsonObject::From(json, path));
  std::map<std::string, ReferenceTensor> tensors;
  for (const auto& [key, value] : all.raw()) {
    const std::string name(key.data(), key.size());
    if (name == "__metadata__") {
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(const JsonObject entry, all.Object(name));
    MILLRACE_ASSIGN_OR_RETURN(tensors[name], ReadEntry(entry, body));
  }
  return tensors;
}

double WorstRowError(const ReferenceTensor& got, const ReferenceTensor& want) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.shape != want.shape || want.shape.empty() ||
      got.floats.size() != want.floats.size() || want.floats.empty()) {
    return kInfinity;
  }
  const auto columns = static_cast<size_t>(want.shape.back());
  double worst = 0;
  for (size_t row = 0; row < want.floats.size(); row += columns) {
    double scale = 1e-30;
    double difference = 0;
    for (size_t i = row; i < row + columns; ++i) {
      const double a = got.floats[i];
      const double b = want.floats[i];
      if (!std::isfinite(a)) {
        return kInfinity;
      }
      scale = std::max(scale, std::fabs(b));
      difference = std::max(difference, std::fabs(a - b));
    }
    worst = std::max(worst, difference / scale);
  }
  return worst;
}

}  // namespace millrace::testing
