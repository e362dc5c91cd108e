#include "coordinator/api/key_store.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "openssl/crypto.h"
#include "openssl/sha.h"

namespace millrace::coordinator {
namespace {

constexpr int64_t kFileBytesMax = int64_t{16} << 20;
constexpr size_t kKeyBytesMax = 4096;
constexpr absl::string_view kScheme = "Bearer";
constexpr absl::string_view kHashPrefix = "sha256:";

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return absl::ascii_isxdigit(letter);
  });
}

}  // namespace

KeyStore::Digest KeyStore::DigestOf(absl::string_view key) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(),
         digest.data());
  return digest;
}

absl::StatusOr<KeyStore> KeyStore::FromFile(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFileOrPipe(path, kFileBytesMax));
  return FromText(text, path);
}

absl::StatusOr<KeyStore> KeyStore::FromText(absl::string_view text,
                                            absl::string_view object) {
  KeyStore store;
  int64_t line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') {
      continue;
    }
    for (const char letter : line) {
      if (!absl::ascii_isgraph(static_cast<unsigned char>(letter))) {
        return InputError(object,
                          absl::StrCat("line ", line_number,
                                       " holds characters that cannot stand in "
                                       "an HTTP header"),
                          "a key is letters, digits and punctuation");
      }
    }
    if (line.size() > kKeyBytesMax) {
      return InputError(object, absl::StrCat("line ", line_number,
                                             " is longer than any key"));
    }
    if (absl::ConsumePrefix(&line, kHashPrefix)) {
      Digest digest;
      if (line.size() != 2 * digest.size() || !IsHex(line)) {
        return InputError(object, absl::StrCat("line ", line_number,
                                               " is no SHA-256 of a key: it "
                                               "needs 64 hex digits"));
      }
      const std::string bytes = absl::HexStringToBytes(line);
      std::copy(bytes.begin(), bytes.end(), digest.begin());
      store.digests_.push_back(digest);
      continue;
    }
    store.digests_.push_back(DigestOf(line));
  }
  if (store.empty()) {
    return InputError(object, "holds no key", "write a key on each line");
  }
  return store;
}

bool KeyStore::Contains(absl::string_view key) const {
  const Digest digest = DigestOf(key);
  int found = 0;
  for (const Digest& known : digests_) {
    found |= CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0;
  }
  return found != 0;
}

bool KeyStore::Authorizes(absl::string_view authorization) const {
  if (empty()) {
    return true;
  }
  authorization = absl::StripAsciiWhitespace(authorization);
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return false;
  }
  absl::string_view key = authorization.substr(kScheme.size());
  if (key.empty() || (key[0] != ' ' && key[0] != '\t')) {
    return false;
  }
  key = absl::StripAsciiWhitespace(key);
  return !key.empty() && Contains(key);
}

}  // namespace millrace::coordinator
