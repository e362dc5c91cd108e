#include "model/checkpoint/digest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "openssl/evp.h"

namespace millrace::model {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;
constexpr size_t kSamplesMax = 1024;
constexpr int64_t kSampleBytes = 64;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    MILLRACE_CHECK(context_ != nullptr &&
                   EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) ==
                       1);
  }
  void Add(const void* data, size_t bytes) {
    MILLRACE_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
  }
  void Add(absl::string_view text) { Add(text.data(), text.size()); }
  std::string Hex() {
    std::array<unsigned char, 32> out;
    MILLRACE_CHECK(EVP_DigestFinal_ex(context_.get(), out.data(), nullptr) ==
                   1);
    return absl::BytesToHexString(absl::string_view(
        reinterpret_cast<const char*>(out.data()), out.size()));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// Bytes from the middle of tensors, evenly spread in the order of the table.
absl::Status AddSamples(const WeightFiles& files, Sha256& hash) {
  const std::vector<StoredTensor>& tensors = files.tensors.all();
  const size_t samples = std::min(tensors.size(), kSamplesMax);
  std::array<std::byte, kSampleBytes> sample;
  for (size_t i = 0; i < samples; ++i) {
    const StoredTensor& tensor = tensors[i * tensors.size() / samples];
    const int64_t bytes = std::min(kSampleBytes, tensor.bytes);
    const auto file = static_cast<size_t>(tensor.file_index);
    MILLRACE_RETURN_IF_ERROR(files.files[file]->Read(
        tensor.offset + (tensor.bytes - bytes) / 2,
        absl::MakeSpan(sample.data(), static_cast<size_t>(bytes))));
    hash.Add(sample.data(), static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> CheckpointDigest(absl::string_view config,
                                             const WeightFiles& files) {
  Sha256 hash;
  hash.Add(absl::StrCat("config ", config.size(), "\n"));
  hash.Add(config);
  std::vector<std::byte> piece;
  for (size_t i = 0; i < files.files.size(); ++i) {
    const RandomAccessFile& file = *files.files[i];
    const int64_t header = files.header_bytes[i];
    hash.Add(absl::StrCat("file ", file.size(), " ", header, "\n"));
    for (int64_t at = 0; at < header; at += kPieceBytes) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, header - at)));
      MILLRACE_RETURN_IF_ERROR(file.Read(at, absl::MakeSpan(piece)));
      hash.Add(piece.data(), piece.size());
    }
  }
  MILLRACE_RETURN_IF_ERROR(AddSamples(files, hash));
  return hash.Hex();
}

}  // namespace millrace::model
