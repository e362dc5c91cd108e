#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace millrace::coordinator {

// The keys that clients may show, kept as SHA-256 digests. Immutable; any
// thread. With no keys every client is let in.
class KeyStore {
 public:
  KeyStore() = default;

  // A file or pipe with a key a line, plain or as "sha256:" and 64 hex digits;
  // empty lines and lines that begin with '#' are skipped, white space around a
  // key as well. InputError when it holds none.
  static absl::StatusOr<KeyStore> FromFile(const std::string& path);
  // The same from the file's content.
  static absl::StatusOr<KeyStore> FromText(absl::string_view text,
                                           absl::string_view object);

  [[nodiscard]] bool empty() const { return digests_.empty(); }
  [[nodiscard]] size_t size() const { return digests_.size(); }

  // Whether the key is one of them. Takes the same time for every key of one
  // length: every digest is compared, each in constant time.
  [[nodiscard]] bool Contains(absl::string_view key) const;

  // The field Authorization: scheme Bearer in any case, then the key.
  [[nodiscard]] bool Authorizes(absl::string_view authorization) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest DigestOf(absl::string_view key);

  std::vector<Digest> digests_;
};

}  // namespace millrace::coordinator
