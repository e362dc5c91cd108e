#include "cli/bench/disk_probe.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/bench/time_limit.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::cli {
namespace {

// Direct reads need memory, places and lengths in multiples of this.
constexpr int64_t kBlockBytes = 4096;
constexpr int64_t kWriteBytes = int64_t{4} << 20;
// Reads under way: enough that the disk is never without one, as in the store.
constexpr int kReaders = 4;
constexpr uint32_t kSeed = 1;

struct Pace {
  int64_t file_bytes;
  absl::Duration write_limit;  // a slow disk is measured on a shorter file
  double window_s;
  int rounds;
};
constexpr Pace kQuick = {.file_bytes = int64_t{256} << 20,
                         .write_limit = absl::Seconds(3),
                         .window_s = 0.2,
                         .rounds = 3};
constexpr Pace kThorough = {.file_bytes = int64_t{1} << 30,
                            .write_limit = absl::Seconds(20),
                            .window_s = 1,
                            .rounds = 5};

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::byte[], Free>;

Buffer MakeBuffer(int64_t bytes) {
  return Buffer(static_cast<std::byte*>(
      std::aligned_alloc(kBlockBytes, static_cast<size_t>(bytes))));
}

absl::Status DiskError(const std::string& folder, absl::string_view what,
                       int error) {
  return UsageError(
      "--nvme",
      absl::StrCat(Printable(folder), " ", what, ": ", ErrnoText(error)),
      "give a folder on the disk that is to hold experts");
}

// A file without a name; goes with its descriptor.
class TestFile {
 public:
  static absl::StatusOr<TestFile> Create(const std::string& folder,
                                         int64_t record_bytes,
                                         const Pace& pace);
  // Bytes per second over about `seconds`.
  absl::StatusOr<double> ReadRecords(double seconds, uint32_t seed) const;
  [[nodiscard]] int64_t space_bytes() const { return space_bytes_; }

 private:
  absl::Status Write(int64_t bytes, absl::Duration limit);
  // One reader's; adds what it read. The errno of what failed, 0.
  int Read(const TimeLimit& limit, uint32_t seed,
           std::atomic<int64_t>& bytes) const;

  std::string folder_;
  transport::Descriptor file_;
  int64_t space_bytes_ = 0;
  int64_t record_bytes_ = 0;
  int64_t file_bytes_ = 0;
};

absl::StatusOr<TestFile> TestFile::Create(const std::string& folder,
                                          int64_t record_bytes,
                                          const Pace& pace) {
  struct statvfs system = {};
  if (statvfs(folder.c_str(), &system) != 0) {
    return DiskError(folder, "cannot be used", errno);
  }
  TestFile file;
  file.folder_ = folder;
  file.space_bytes_ = static_cast<int64_t>(system.f_bavail) *
                      static_cast<int64_t>(system.f_frsize);
  file.record_bytes_ =
      (record_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const int64_t bytes = std::min(
      std::max(pace.file_bytes, 8 * file.record_bytes_), file.space_bytes_ / 2);
  if (bytes < 2 * file.record_bytes_ || bytes < kWriteBytes) {
    return AnswerIsNo("--nvme",
                      absl::StrCat(Printable(folder), " has ",
                                   HumanSize(file.space_bytes_), " free"),
                      "measuring needs four records there");
  }
  file.file_ = transport::Descriptor(
      open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  if (!file.file_.valid()) {
    return DiskError(folder, "takes no file for direct reads", errno);
  }
  MILLRACE_RETURN_IF_ERROR(file.Write(bytes, pace.write_limit));
  return file;
}

absl::Status TestFile::Write(int64_t bytes, absl::Duration limit) {
  const Buffer buffer = MakeBuffer(kWriteBytes);
  std::mt19937 random(kSeed);
  // Nothing that a disk could compress.
  for (int64_t i = 0; i < kWriteBytes; i += sizeof(uint32_t)) {
    const uint32_t word = random();
    std::copy_n(reinterpret_cast<const std::byte*>(&word), sizeof(word),
                &buffer[static_cast<size_t>(i)]);
  }
  const TimeLimit time(limit);
  const int64_t least = std::max(kWriteBytes, 2 * record_bytes_);
  while (file_bytes_ + kWriteBytes <= bytes &&
         (file_bytes_ < least || !time.Over())) {
    const ssize_t wrote = pwrite(file_.get(), buffer.get(), kWriteBytes,
                                 static_cast<off_t>(file_bytes_));
    if (wrote != kWriteBytes) {
      return DiskError(folder_, "cannot be written to",
                       wrote < 0 ? errno : ENOSPC);
    }
    file_bytes_ += kWriteBytes;
    MILLRACE_RETURN_IF_ERROR(time.CheckInterrupt());
  }
  if (fdatasync(file_.get()) != 0) {
    return DiskError(folder_, "cannot be written to", errno);
  }
  return absl::OkStatus();
}

int TestFile::Read(const TimeLimit& limit, uint32_t seed,
                   std::atomic<int64_t>& bytes) const {
  const Buffer buffer = MakeBuffer(record_bytes_);
  std::mt19937_64 random(seed);
  const auto places =
      static_cast<uint64_t>((file_bytes_ - record_bytes_) / kBlockBytes + 1);
  do {
    const auto at = static_cast<off_t>(random() % places * kBlockBytes);
    const ssize_t got = pread(file_.get(), buffer.get(),
                              static_cast<size_t>(record_bytes_), at);
    if (got != record_bytes_) {
      return got < 0 ? errno : EIO;
    }
    bytes.fetch_add(got, std::memory_order_relaxed);
  } while (!limit.Over());
  return 0;
}

absl::StatusOr<double> TestFile::ReadRecords(double seconds,
                                             uint32_t seed) const {
  const SystemClock clock;
  const TimeLimit limit(absl::Seconds(seconds));
  std::atomic<int64_t> bytes{0};
  std::atomic<int> failed{0};
  const absl::Duration start = clock.Monotonic();
  std::vector<std::thread> readers;
  for (uint32_t i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i]() noexcept {
      if (const int error = Read(limit, seed * kReaders + i, bytes);
          error != 0) {
        failed.store(error, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  if (failed != 0) {
    return DiskError(folder_, "cannot be read from", failed);
  }
  MILLRACE_RETURN_IF_ERROR(limit.CheckInterrupt());
  return static_cast<double>(bytes.load()) /
         absl::ToDoubleSeconds(clock.Monotonic() - start);
}

}  // namespace

absl::StatusOr<NvmeEntry> ProbeDisk(const std::string& folder,
                                    int64_t record_bytes, bool quick) {
  const Pace& pace = quick ? kQuick : kThorough;
  MILLRACE_ASSIGN_OR_RETURN(const TestFile file,
                            TestFile::Create(folder, record_bytes, pace));
  std::vector<double> rates;
  for (int round = 0; round < pace.rounds; ++round) {
    MILLRACE_ASSIGN_OR_RETURN(
        const double rate,
        file.ReadRecords(pace.window_s, static_cast<uint32_t>(round)));
    rates.push_back(rate);
  }
  return NvmeEntry{SpreadOf(rates), file.space_bytes()};
}

}  // namespace millrace::cli
