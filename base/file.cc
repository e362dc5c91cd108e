#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/status_macros.h"

namespace millrace {
namespace {

// How an error calls a file; an empty path shows as one.
std::string NameOf(const std::string& path) {
  return path.empty() ? "''" : Printable(path, 512);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RandomAccessFile>> RandomAccessFile::Open(
    const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer must not hang.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return InputError(NameOf(path),
                      absl::StrCat("cannot be opened: ", ErrnoText(errno)),
                      errno == ENOENT ? "check the path" : "");
  }
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return InputError(Printable(path, 512), "is not a regular file",
                      "give the path of a file");
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

namespace {

// To the end of the pipe, which is open without blocking: a read before its
// first writer has come would find the end.
absl::StatusOr<std::string> ReadPipe(int descriptor, const std::string& path,
                                     int64_t bytes_max) {
  std::string content;
  char buffer[1 << 12];
  for (;;) {
    pollfd readable = {descriptor, POLLIN, 0};
    if (poll(&readable, 1, -1) < 0) {
      return MakeError(absl::StatusCode::kCancelled, Printable(path, 512),
                       absl::StrCat("reading ended: ", ErrnoText(errno)));
    }
    const ssize_t got = read(descriptor, buffer, sizeof(buffer));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got < 0) {
      return MakeError(absl::StatusCode::kUnavailable, Printable(path, 512),
                       absl::StrCat("reading failed: ", ErrnoText(errno)));
    }
    if (got == 0) {
      return content;
    }
    content.append(buffer, static_cast<size_t>(got));
    if (static_cast<int64_t>(content.size()) > bytes_max) {
      return InputError(Printable(path, 512),
                        absl::StrCat("holds more than the ", bytes_max,
                                     " bytes that such a file may have"),
                        "check that it is the pipe that was meant");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFileOrPipe(const std::string& path,
                                           int64_t bytes_max) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  const bool is_pipe = descriptor >= 0 && fstat(descriptor, &info) == 0 &&
                       S_ISFIFO(info.st_mode);
  absl::StatusOr<std::string> content =
      is_pipe ? ReadPipe(descriptor, path, bytes_max)
              : ReadFile(path, bytes_max);
  if (descriptor >= 0) {
    close(descriptor);
  }
  return content;
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t bytes_max) {
  MILLRACE_ASSIGN_OR_RETURN(const auto file, RandomAccessFile::Open(path));
  if (file->size() > bytes_max) {
    return InputError(
        Printable(path, 512),
        absl::StrCat("is ", file->size(), " bytes, more than the ", bytes_max,
                     " that such a file may have"),
        "check that it is the file that was meant");
  }
  std::string content(static_cast<size_t>(file->size()), '\0');
  MILLRACE_RETURN_IF_ERROR(
      file->Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(content.data()),
                                   content.size())));
  return content;
}

namespace {

absl::Status WriteError(const std::string& path, absl::string_view what,
                        int error) {
  return MakeError(absl::StatusCode::kUnavailable, NameOf(path),
                   absl::StrCat(what, " failed: ", ErrnoText(error)),
                   "check that the folder exists and the disk has room");
}

// Writes all of it and closes the descriptor, whatever happens.
absl::Status WriteAndClose(int descriptor, const std::string& path,
                           absl::Span<const char> content, bool to_disk) {
  const auto fail = [&](absl::string_view what) {
    absl::Status status = WriteError(path, what, errno);
    close(descriptor);
    return status;
  };
  while (!content.empty()) {
    const ssize_t put = write(descriptor, content.data(), content.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      return fail("writing");
    }
    content.remove_prefix(static_cast<size_t>(put));
  }
  // Else the name could outlive a power cut, and the content not.
  if (to_disk && fsync(descriptor) != 0) {
    return fail("writing");
  }
  return close(descriptor) == 0 ? absl::OkStatus()
                                : WriteError(path, "closing", errno);
}

// Where the file itself is, through symbolic links that people made; the path
// as it is where nothing is there yet.
std::string FollowLinks(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return path;
  }
  std::string out = resolved;
  std::free(resolved);
  return out;
}

}  // namespace

// A new file beside the old one, renamed into its place: also after a power cut
// it is one of the two.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const char> content) {
  constexpr mode_t kNewFile = 0644;
  const std::string target = FollowLinks(path);
  struct stat old;
  const bool exists = stat(target.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    // A pipe or terminal: replacing it would take it from everyone else.
    const int descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor < 0 ? WriteError(path, "opening", errno)
                          : WriteAndClose(descriptor, path, content, false);
  }
  const std::string temporary = absl::StrCat(target, ".tmp.", getpid());
  const mode_t mode = exists ? old.st_mode & 07777 : kNewFile;
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (descriptor < 0) {
    return WriteError(path, "creating", errno);
  }
  if (exists) {
    fchmod(descriptor, mode);  // what others may not read stays so
  }
  absl::Status status = WriteAndClose(descriptor, path, content, true);
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) {
    status = WriteError(path, "renaming", errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
  }
  return status;
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
