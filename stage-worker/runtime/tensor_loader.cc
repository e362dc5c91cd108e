#include "stage-worker/runtime/tensor_loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "kernels/quant/tile.h"
#include "model/checkpoint/row_composer.h"

namespace millrace::worker {
namespace {

// One read: long enough for a disk's or a network file system's full rate,
// short enough that the buffers of all threads are nothing beside the weights.
constexpr int64_t kReadBytes = 4 << 20;
constexpr int64_t kThreadsMax = 8;

// Some tiles of one matrix, or a whole vector.
struct Piece {
  const MatrixRead* matrix = nullptr;
  const VectorRead* vector = nullptr;
  int64_t tile_begin = 0;
  int64_t tile_end = 0;
  int64_t bytes = 0;
};

std::vector<Piece> CutIntoPieces(const std::vector<MatrixRead>& matrices,
                                 const std::vector<VectorRead>& vectors) {
  std::vector<Piece> pieces;
  for (const VectorRead& read : vectors) {
    pieces.push_back({nullptr, &read, 0, 0, read.vector->source.bytes});
  }
  for (const MatrixRead& read : matrices) {
    const model::Matrix& matrix = *read.matrix;
    const int64_t row_bytes =
        kernels::StoredRowBytes(matrix.format, matrix.cols);
    const int64_t tiles = kernels::NumTiles(matrix.rows);
    const int64_t step = std::max<int64_t>(
        1, kReadBytes / std::max<int64_t>(1, row_bytes * kernels::kTileRows));
    for (int64_t begin = 0; begin < tiles; begin += step) {
      const int64_t end = std::min(tiles, begin + step);
      const int64_t rows = std::min(matrix.rows, end * kernels::kTileRows) -
                           begin * kernels::kTileRows;
      pieces.push_back({&read, nullptr, begin, end, rows * row_bytes});
    }
  }
  return pieces;
}

class Loader {
 public:
  Loader(const model::Checkpoint& checkpoint, std::vector<Piece> pieces,
         const Weights::Progress& progress, const Weights::Cancelled& cancelled)
      : checkpoint_(checkpoint),
        pieces_(std::move(pieces)),
        progress_(progress),
        cancelled_(cancelled) {
    for (const Piece& piece : pieces_) {
      bytes_total_ += piece.bytes;
    }
  }

  absl::Status Run() {
    const int64_t num_threads = std::clamp<int64_t>(
        std::thread::hardware_concurrency(), 1,
        std::min<int64_t>(kThreadsMax, std::max<size_t>(pieces_.size(), 1)));
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < num_threads; ++i) {
      threads.emplace_back([this] { Work(); });
    }
    Work();
    for (std::thread& thread : threads) {
      thread.join();
    }
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  void Work() noexcept {
    SetFloatEnvironment();
    std::unique_ptr<std::byte[]> buffer;
    int64_t capacity = 0;
    while (!failed_.load(std::memory_order_relaxed)) {
      // Relaxed: the index alone decides who takes a piece.
      const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= pieces_.size()) {
        return;
      }
      const Piece& piece = pieces_[index];
      if (piece.bytes > capacity) {
        capacity = piece.bytes;
        buffer = std::make_unique_for_overwrite<std::byte[]>(
            static_cast<size_t>(capacity));
      }
      absl::Status status =
          cancelled_ && cancelled_()
              ? absl::CancelledError("loading was interrupted")
              : Load(piece, buffer.get());
      Finish(piece, std::move(status));
    }
  }

  absl::Status Load(const Piece& piece, std::byte* buffer) {
    return piece.vector != nullptr ? LoadVector(*piece.vector, buffer)
                                   : LoadTiles(piece, buffer);
  }

  std::string Place(const model::TensorSource& source) const {
    return absl::StrCat(
        checkpoint_.files()[static_cast<size_t>(source.file_index)], ": ",
        Printable(source.name));
  }

  // What a tile was refused for, and where: the first element that is no finite
  // number. `rows` are stored rows, the first is row `row` of the matrix.
  absl::Status BadTile(const model::Matrix& matrix, kernels::TileError error,
                       int64_t row, const std::byte* rows) const {
    const bool bad_scale = error == kernels::TileError::kBadScale;
    const int64_t row_bytes =
        kernels::StoredRowBytes(matrix.format, matrix.cols);
    std::vector<float> values(static_cast<size_t>(matrix.cols));
    size_t column = 0;
    const int64_t end = std::min(matrix.rows, row + kernels::kTileRows);
    for (; row < end; ++row, rows += row_bytes) {
      kernels::DecodeStoredRow(matrix.format, rows, matrix.cols, values.data());
      column = static_cast<size_t>(
          std::find_if(values.begin(), values.end(),
                       [](float value) { return !std::isfinite(value); }) -
          values.begin());
      if (column < values.size()) {
        break;
      }
    }
    return InputError(
        Place(bad_scale && matrix.parts.has_value() ? matrix.parts->scales
                                                    : matrix.source),
        absl::StrCat("row ", row, " column ", column, " has ",
                     bad_scale ? "a scale or minimum that is no finite number"
                               : "a code that is no number"),
        "the file is damaged: copy or convert it again");
  }

  absl::Status LoadVector(const VectorRead& read, std::byte* buffer) {
    const model::Vector& vector = *read.vector;
    MILLRACE_RETURN_IF_ERROR(checkpoint_.Read(
        vector.source.file_index, vector.source.offset,
        absl::MakeSpan(buffer, static_cast<size_t>(vector.source.bytes))));
    kernels::DecodeStoredRow(vector.format, buffer, vector.size, read.values);
    for (int64_t i = 0; i < vector.size; ++i) {
      if (!std::isfinite(read.values[i])) {
        return InputError(
            Place(vector.source),
            absl::StrCat("element ", i, " is not a finite number"),
            "the file is damaged: copy or convert it again");
      }
    }
    return absl::OkStatus();
  }

  absl::Status LoadTiles(const Piece& piece, std::byte* buffer) {
    const model::Matrix& matrix = *piece.matrix->matrix;
    const int64_t row_bytes =
        kernels::StoredRowBytes(matrix.format, matrix.cols);
    const int64_t tile_bytes = kernels::TileBytes(matrix.format, matrix.cols);
    MILLRACE_RETURN_IF_ERROR(model::ReadStoredRows(
        checkpoint_, matrix, piece.tile_begin * kernels::kTileRows,
        piece.bytes / row_bytes,
        absl::MakeSpan(buffer, static_cast<size_t>(piece.bytes))));
    for (int64_t tile = piece.tile_begin; tile < piece.tile_end; ++tile) {
      const int64_t row = tile * kernels::kTileRows;
      const std::byte* rows =
          buffer + (row - piece.tile_begin * kernels::kTileRows) * row_bytes;
      const kernels::TileError error = kernels::PackTile(
          matrix.format, rows, row_bytes,
          static_cast<int>(
              std::min<int64_t>(kernels::kTileRows, matrix.rows - row)),
          matrix.cols, piece.matrix->tiles + tile * tile_bytes);
      if (error != kernels::TileError::kNone) {
        return BadTile(matrix, error, row, rows);
      }
    }
    return absl::OkStatus();
  }

  void Finish(const Piece& piece, absl::Status status)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!status.ok()) {
      failed_.store(true, std::memory_order_relaxed);
      MutexLock lock(mutex_);
      if (status_.ok()) {
        status_ = std::move(status);
      }
      return;
    }
    const int64_t done =
        bytes_done_.fetch_add(piece.bytes, std::memory_order_relaxed) +
        piece.bytes;
    if (progress_) {
      progress_({done, bytes_total_});
    }
  }

  const model::Checkpoint& checkpoint_;
  const std::vector<Piece> pieces_;
  const Weights::Progress& progress_;
  const Weights::Cancelled& cancelled_;
  int64_t bytes_total_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> bytes_done_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status LoadTensors(const model::Checkpoint& checkpoint,
                         const std::vector<MatrixRead>& matrices,
                         const std::vector<VectorRead>& vectors,
                         const Weights::Progress& progress,
                         const Weights::Cancelled& cancelled) {
  return Loader(checkpoint, CutIntoPieces(matrices, vectors), progress,
                cancelled)
      .Run();
}

}  // namespace millrace::worker
