#include "model/tokenizer/open.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "model/checkpoint/gguf_vocabulary_reader.h"

namespace millrace::model {
namespace {

// The largest known tokenizer.json has 33 MB.
constexpr int64_t kJsonBytesMax = int64_t{256} << 20;
// Enough of a file to tell what it is.
constexpr int64_t kStartBytes = 4096;
constexpr absl::string_view kHint =
    "give a tokenizer.json or a GGUF file of the same model";

absl::StatusOr<std::string> StartOf(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                            RandomAccessFile::Open(path));
  std::string start(static_cast<size_t>(std::min(file->size(), kStartBytes)),
                    '\0');
  MILLRACE_RETURN_IF_ERROR(
      file->Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(start.data()),
                                   start.size())));
  return start;
}

// BASE64 SPACE RANK on the first line.
bool LooksLikeTiktoken(absl::string_view start) {
  const absl::string_view line = start.substr(0, start.find('\n'));
  const size_t blank = line.find(' ');
  std::string bytes;
  int64_t rank = 0;
  return blank != absl::string_view::npos &&
         absl::Base64Unescape(line.substr(0, blank), &bytes) &&
         absl::SimpleAtoi(line.substr(blank + 1), &rank);
}

// The first field of a ModelProto is a piece: tag 0x0A, its length, and in it
// a string of tag 0x0A.
bool LooksLikeSentencePiece(absl::string_view start) {
  return start.size() > 2 && start[0] == '\x0A' && start[2] == '\x0A';
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenFile(const std::string& path) {
  const absl::StatusOr<std::string> read = StartOf(path);
  MILLRACE_RETURN_IF_ERROR(read.status());
  const absl::string_view start = *read;
  if (absl::StartsWith(start, "GGUF")) {
    MILLRACE_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                              ReadGgufVocabulary(path));
    return Tokenizer::FromGguf(vocabulary, path);
  }
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(start), "{")) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string json,
                              ReadFile(path, kJsonBytesMax));
    return Tokenizer::FromTokenizerJson(json, path);
  }
  if (LooksLikeSentencePiece(start)) {
    return InputError(path,
                      "is a SentencePiece model, which is not supported in "
                      "this version",
                      kHint);
  }
  if (LooksLikeTiktoken(start)) {
    return InputError(
        path, "is a tiktoken file, which is not supported in this version",
        kHint);
  }
  return InputError(path, "is no tokenizer that is known", kHint);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path) {
  if (!IsDirectory(path)) {
    return OpenFile(path);
  }
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "tiktoken.model"}) {
    const std::string file = absl::StrCat(path, "/", name);
    if (FileExists(file)) {
      return OpenFile(file);
    }
  }
  return InputError(path, "has no tokenizer.json", kHint);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(
    const Checkpoint& checkpoint) {
  if (const std::string* path = checkpoint.tokenizer_json_path();
      path != nullptr) {
    return OpenFile(*path);
  }
  const GgufVocabulary* vocabulary = checkpoint.gguf_vocabulary();
  if (vocabulary == nullptr || vocabulary->model == "none" ||
      vocabulary->tokens.empty()) {
    return std::unique_ptr<Tokenizer>();
  }
  return Tokenizer::FromGguf(*vocabulary, checkpoint.files().empty()
                                              ? "the checkpoint"
                                              : checkpoint.files().front());
}

}  // namespace millrace::model
