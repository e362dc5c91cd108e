#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace {
absl::StatusOr<std::unique_ptr<RandomAccessFile>> RandomAccessFile::Open(
    const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer must not hang.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return InputError(Printable(path, 512),
                      absl::StrCat("cannot be opened: ", ErrnoText(errno)),
                      errno == ENOENT ? "check the path" : "");
  }
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return InputError(Printable(path, 512), "is not a regular file");
  }
  return std::unique_ptr<RandomAccessFile>(
      new RandomAccessFile(path, descriptor, info.st_size));
}

RandomAccessFile::~RandomAccessFile() { close(descriptor_); }

absl::Status RandomAccessFile::Read(int64_t offset,
                                    absl::Span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    // One call reads at most about 2 GiB; keep well below it.
    const size_t want = std::min<size_t>(out.size() - done, 1u << 30);
    const ssize_t got = pread(descriptor_, out.data() + done, want,
                              offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return MakeError(absl::StatusCode::kUnavailable, Printable(path_, 512),
                       absl::StrCat("reading ", out.size(), " bytes at ",
                                    offset, " failed: ", ErrnoText(errno)));
    }
    if (got == 0) {
      return InputError(
          Printable(path_, 512),
          absl::StrCat("ends after ", offset + static_cast<int64_t>(done),
                       " bytes, ", out.size(), " bytes at ", offset,
                       " were expected"),
          "the file is cut short: copy or download it again");
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

void RandomAccessFile::DropCache(int64_t offset, int64_t size) const {
  posix_fadvise(descriptor_, offset, size, POSIX_FADV_DONTNEED);
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t bytes_max) {
  MILLRACE_ASSIGN_OR_RETURN(const auto file, RandomAccessFile::Open(path));
  if (file->size() > bytes_max) {
    return InputError(
        Printable(path, 512),
        absl::StrCat("is ", file->size(), " bytes, more than the ", bytes_max,
                     " that such a file may have"));
  }
  std::string content(static_cast<size_t>(file->size()), '\0');
  MILLRACE_RETURN_IF_ERROR(
      file->Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(content.data()),
                                   content.size())));
  return content;
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const char> content) {
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  const auto fail = [&](absl::string_view what) {
    absl::Status status =
        MakeError(absl::StatusCode::kUnavailable, Printable(path, 512),
                  absl::StrCat(what, " failed: ", ErrnoText(errno)),
                  "check that the folder exists and the disk has room");
    unlink(temporary.c_str());
    return status;
  };
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return fail("creating");
  }
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t put =
        write(descriptor, content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      absl::Status status = fail("writing");
      close(descriptor);
      return status;
    }
    done += static_cast<size_t>(put);
  }
  if (close(descriptor) != 0) {
    return fail("closing");
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return fail("renaming");
  }
  return absl::OkStatus();
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

}  // namespace millrace
