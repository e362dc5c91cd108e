#include "cli/dump_tap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::cli {
namespace {

// A NaN leaves with one payload and sign, whatever made it.
void CopyCanonical(const float* from, int64_t count, float* to) {
  std::transform(from, from + count, to, [](float value) {
    return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
  });
}

class SafetensorsWriter {
 public:
  void Add(const std::string& name, const char* dtype,
           const std::vector<int64_t>& shape, const void* data, size_t bytes) {
    boost::json::object entry;
    entry["dtype"] = dtype;
    boost::json::array dims;
    for (const int64_t dim : shape) {
      dims.push_back(dim);
    }
    entry["shape"] = dims;
    entry["data_offsets"] = {body_.size(), body_.size() + bytes};
    header_[name] = entry;
    body_.append(static_cast<const char*>(data), bytes);
  }

  [[nodiscard]] absl::Status Write(const std::string& path) const {
    std::string header = WriteJson(header_);
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t size = header.size();
    std::string file(sizeof(size), '\0');
    std::memcpy(file.data(), &size, sizeof(size));
    file.append(header);
    file.append(body_);
    return WriteFileAtomically(path, file);
  }

 private:
  boost::json::object header_;
  std::string body_;
};

}  // namespace

DumpTap::DumpTap(const model::ModelSpec& spec, std::vector<int32_t> tokens)
    : tokens_(std::move(tokens)),
      hidden_size_(spec.hidden_size),
      vocab_size_(spec.vocab_size),
      hidden_(spec.layers.size() + 1,
              std::vector<float>(tokens_.size() *
                                 static_cast<size_t>(spec.hidden_size))),
      logits_(tokens_.size() * static_cast<size_t>(spec.vocab_size)) {}

void DumpTap::OnHidden(int64_t layer, const transport::Frame& frame,
                       const float* hidden, int64_t num_rows,
                       int64_t hidden_size) {
  for (int64_t i = 0; i < num_rows; ++i) {
    const int64_t position = frame.rows[static_cast<size_t>(i)].position;
    CopyCanonical(
        hidden + i * hidden_size, hidden_size,
        hidden_[static_cast<size_t>(layer)].data() + position * hidden_size_);
  }
}

void DumpTap::OnLogits(const transport::Row& row, const float* logits,
                       int64_t vocab_size) {
  CopyCanonical(logits, vocab_size,
                logits_.data() + int64_t{row.position} * vocab_size_);
}

absl::Status DumpTap::Write(const std::string& path) const {
  SafetensorsWriter writer;
  const auto rows = static_cast<int64_t>(tokens_.size());
  writer.Add("tokens", "I32", {rows}, tokens_.data(), tokens_.size() * 4);
  for (size_t layer = 0; layer < hidden_.size(); ++layer) {
    writer.Add(absl::StrCat("hidden.", layer), "F32", {rows, hidden_size_},
               hidden_[layer].data(), hidden_[layer].size() * 4);
  }
  writer.Add("logits", "F32", {rows, vocab_size_}, logits_.data(),
             logits_.size() * 4);
  return writer.Write(path);
}

}  // namespace millrace::cli
