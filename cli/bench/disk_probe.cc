#include "cli/bench/disk_probe.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "cli/bench/available_memory.h"
#include "cli/bench/time_limit.h"
#include "stage-worker/runtime/mapped_memory.h"
#include "transport/tcp/tcp_socket.h"

namespace millrace::cli {
namespace {

// Direct reads need memory, places and lengths in multiples of this.
constexpr int64_t kBlockBytes = 4096;
constexpr int64_t kWriteBytes = int64_t{4} << 20;
// Records of a file, where there is room: with fewer, random places overlap.
constexpr int64_t kRecords = 4;
constexpr int64_t kRecordsLeast = 2;
// Reads under way: enough that the disk is never without one, as in the store.
constexpr int kReaders = 4;
constexpr uint32_t kSeed = 1;

struct Pace {
  int64_t file_bytes;
  absl::Duration write_limit;  // a slow disk is measured on a shorter file
  absl::Duration window;
  int rounds;
};
constexpr Pace kQuick = {.file_bytes = int64_t{256} << 20,
                         .write_limit = absl::Seconds(3),
                         .window = absl::Milliseconds(200),
                         .rounds = 3};
constexpr Pace kThorough = {.file_bytes = int64_t{1} << 30,
                            .write_limit = absl::Seconds(20),
                            .window = absl::Seconds(1),
                            .rounds = 5};
static_assert(kRecords * kRecordBytesMax <= kThorough.file_bytes);

int64_t RoundUp(int64_t bytes, int64_t piece) {
  return (bytes + piece - 1) / piece * piece;
}

const Pace& PaceOf(bool quick) { return quick ? kQuick : kThorough; }

absl::Status DiskError(const std::string& folder, absl::string_view what,
                       int error) {
  return UsageError(
      "--nvme",
      absl::StrCat(Printable(folder), " ", what, ": ", ErrnoText(error)),
      "give a folder on the disk that is to hold experts");
}

// A record for every reader, and what is written at once.
absl::StatusOr<worker::MappedMemory> MapBuffers(int64_t record_bytes) {
  const int64_t bytes = std::max(kWriteBytes, kReaders * record_bytes);
  const int64_t available = AvailableMemory();
  absl::StatusOr<worker::MappedMemory> memory =
      worker::MappedMemory::Map(bytes);
  if (memory.ok() && (available == 0 || bytes <= available)) {
    return memory;
  }
  return MakeError(absl::StatusCode::kResourceExhausted, "--record",
                   absl::StrCat("memory does not hold the ", HumanSize(bytes),
                                " of reads under way"),
                   "give a smaller --record");
}

// A file without a name; goes with its descriptor.
class TestFile {
 public:
  static absl::StatusOr<TestFile> Create(const std::string& folder,
                                         int64_t record_bytes, bool quick);
  // Bytes per second over about `time`.
  absl::StatusOr<double> ReadRecords(absl::Duration time, uint32_t seed) const;
  [[nodiscard]] int64_t space_bytes() const { return space_bytes_; }

 private:
  absl::Status Write(int64_t bytes, absl::Duration limit);
  // One reader's, from 0 on; adds what it read. The errno of what failed, 0.
  int Read(uint32_t reader, const TimeLimit& limit, uint32_t seed,
           std::atomic<int64_t>& bytes) const;

  std::string folder_;
  worker::MappedMemory buffers_;
  transport::Descriptor file_;
  int64_t space_bytes_ = 0;
  int64_t record_bytes_ = 0;
  int64_t file_bytes_ = 0;
};

absl::StatusOr<TestFile> TestFile::Create(const std::string& folder,
                                          int64_t record_bytes, bool quick) {
  struct statvfs system = {};
  if (statvfs(folder.c_str(), &system) != 0) {
    return DiskError(folder, "cannot be used", errno);
  }
  TestFile file;
  file.folder_ = folder;
  file.space_bytes_ = static_cast<int64_t>(system.f_bavail) *
                      static_cast<int64_t>(system.f_frsize);
  file.record_bytes_ = RoundUp(record_bytes, kBlockBytes);
  MILLRACE_ASSIGN_OR_RETURN(file.buffers_, MapBuffers(file.record_bytes_));
  const int64_t bytes =
      DiskFileBytes(file.record_bytes_, file.space_bytes_, quick);
  if (bytes == 0) {
    return UsageError(
        "--nvme",
        absl::StrCat(Printable(folder), " has ", HumanSize(file.space_bytes_),
                     " free, of which measuring takes no more than half"),
        absl::StrCat("records of this size need ",
                     HumanSize(2 * DiskFileLeast(file.record_bytes_)),
                     " free there"));
  }
  file.file_ = transport::Descriptor(
      open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  if (!file.file_.valid()) {
    return DiskError(folder, "takes no file for direct reads", errno);
  }
  MILLRACE_RETURN_IF_ERROR(file.Write(bytes, PaceOf(quick).write_limit));
  return file;
}

absl::Status TestFile::Write(int64_t bytes, absl::Duration limit) {
  std::byte* const buffer = buffers_.data();
  std::mt19937 random(kSeed);
  // Nothing that a disk could compress.
  for (int64_t i = 0; i < kWriteBytes; i += sizeof(uint32_t)) {
    const uint32_t word = random();
    std::copy_n(reinterpret_cast<const std::byte*>(&word), sizeof(word),
                buffer + i);
  }
  const TimeLimit time(limit);
  const int64_t least = DiskFileLeast(record_bytes_);
  while (file_bytes_ < bytes && (file_bytes_ < least || !time.Over())) {
    const ssize_t wrote = pwrite(file_.get(), buffer, kWriteBytes,
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

int TestFile::Read(uint32_t reader, const TimeLimit& limit, uint32_t seed,
                   std::atomic<int64_t>& bytes) const {
  std::byte* const buffer = buffers_.data() + reader * record_bytes_;
  std::mt19937_64 random(seed);
  const auto places =
      static_cast<uint64_t>((file_bytes_ - record_bytes_) / kBlockBytes + 1);
  do {
    const auto at = static_cast<off_t>(random() % places * kBlockBytes);
    const ssize_t got =
        pread(file_.get(), buffer, static_cast<size_t>(record_bytes_), at);
    if (got != record_bytes_) {
      return got < 0 ? errno : EIO;
    }
    bytes.fetch_add(got, std::memory_order_relaxed);
  } while (!limit.Over());
  return 0;
}

absl::StatusOr<double> TestFile::ReadRecords(absl::Duration time,
                                             uint32_t seed) const {
  const SystemClock clock;
  const TimeLimit limit(time);
  std::atomic<int64_t> bytes{0};
  std::atomic<int> failed{0};
  const absl::Duration start = clock.Monotonic();
  std::vector<std::thread> readers;
  for (uint32_t i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i]() noexcept {
      if (const int error = Read(i, limit, seed * kReaders + i, bytes);
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

int64_t DiskFileLeast(int64_t record_bytes) {
  return RoundUp(kRecordsLeast * record_bytes, kWriteBytes);
}

int64_t DiskFileBytes(int64_t record_bytes, int64_t free_bytes, bool quick) {
  const int64_t wanted = RoundUp(
      std::max(PaceOf(quick).file_bytes, kRecords * record_bytes), kWriteBytes);
  const int64_t bytes =
      std::min(wanted, free_bytes / 2 / kWriteBytes * kWriteBytes);
  return bytes < DiskFileLeast(record_bytes) ? 0 : bytes;
}

absl::StatusOr<NvmeEntry> ProbeDisk(const std::string& folder,
                                    int64_t record_bytes, bool quick) {
  const Pace& pace = PaceOf(quick);
  MILLRACE_ASSIGN_OR_RETURN(const TestFile file,
                            TestFile::Create(folder, record_bytes, quick));
  std::vector<double> rates;
  for (int round = 0; round < pace.rounds; ++round) {
    MILLRACE_ASSIGN_OR_RETURN(
        const double rate,
        file.ReadRecords(pace.window, static_cast<uint32_t>(round)));
    rates.push_back(rate);
  }
  return NvmeEntry{SpreadOf(rates), file.space_bytes()};
}

}  // namespace millrace::cli
