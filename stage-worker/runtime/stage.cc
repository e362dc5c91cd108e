#include "stage-worker/runtime/stage.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "kernels/quant/tile.h"
#include "stage-worker/layers/layer.h"
#include "stage-worker/runtime/stage_shape.h"

namespace millrace::worker {
namespace {

constexpr size_t kScratchAlignment = 64;
static_assert(model::kKvBlockPositions == kernels::kKvBlockPositions,
              "pools, ledgers and attention count in the same blocks");

// The attention operation of a layer; null where it has none.
const LoadedAttention* AttentionOf(const LoadedLayer& layer) {
  for (const LoadedOperation& operation : layer.operations) {
    if (const auto* attention = std::get_if<LoadedAttention>(&operation)) {
      return attention;
    }
  }
  return nullptr;
}

// Scratch that the samplers take for themselves.
int64_t SamplersBytes(const model::ModelSpec& spec, const StageConfig& config) {
  return config.holds_head
             ? model::kSampledTogether * model::SamplerBytes(spec.vocab_size)
             : 0;
}

// The pool of a stage, or why it cannot have so many threads.
absl::StatusOr<std::unique_ptr<ThreadPool>> MakePool(int num_threads) {
  auto pool = std::make_unique<ThreadPool>(num_threads);
  if (pool->num_threads() == num_threads) {
    return pool;
  }
  // Reading, stepping and links take some too.
  constexpr int kOthers = 16;
  return MakeError(
      absl::StatusCode::kResourceExhausted, "--threads",
      absl::StrCat(num_threads, " threads cannot be had, the system starts ",
                   pool->num_threads(), " here"),
      absl::StrCat("give at most ", std::max(1, pool->num_threads() - kOthers),
                   ", or raise the limit of threads or memory (ulimit)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> Stage::Create(
    const model::Checkpoint& checkpoint, const StageRunner::Options& options) {
  const model::StageBytes bytes =
      model::StageBytesOf(checkpoint.spec(), ShapeOf(options.config));
  // First, since it is known at once whether it can be had.
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                            MakePool(options.config.num_threads));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Weights> weights,
                            Weights::Load(checkpoint, options.config,
                                          options.progress, options.cancelled));
  MILLRACE_ASSIGN_OR_RETURN(
      MappedMemory kv, MappedMemory::Map(bytes.kv_bytes, kStageMemoryRemedy));
  MILLRACE_ASSIGN_OR_RETURN(
      MappedMemory scratch,
      MappedMemory::Map(bytes.scratch_bytes -
                            SamplersBytes(checkpoint.spec(), options.config),
                        kStageMemoryRemedy));
  if (options.touch_memory) {
    MILLRACE_RETURN_IF_ERROR(kv.Touch(*pool, options.cancelled));
    MILLRACE_RETURN_IF_ERROR(scratch.Touch(*pool, options.cancelled));
  }
  return std::unique_ptr<Stage>(new Stage(options, std::move(pool),
                                          std::move(weights), std::move(kv),
                                          std::move(scratch)));
}

Stage::Stage(const StageRunner::Options& options,
             std::unique_ptr<ThreadPool> pool, std::unique_ptr<Weights> weights,
             MappedMemory kv, MappedMemory scratch)
    : options_(options),
      config_(options.config),
      weights_(std::move(weights)),
      kv_(std::move(kv)),
      scratch_(std::move(scratch)),
      pool_(std::move(pool)),
      ropes_(*weights_, config_.slots),
      sequences_(weights_->spec(), config_) {
  memory_ = model::StageBytesOf(weights_->spec(), ShapeOf(config_));
  step_.kernels = options_.kernels;
  step_.pool = pool_.get();
  step_.cancelled = &cancelled_;
  step_.compute = config_.compute;
  step_.kv_type = config_.kv_type;
  step_.sizes = model::ActivationSizesOf(weights_->spec(), ShapeOf(config_));
  step_.ffn_rows_max = model::FfnRowsMax(step_.sizes, config_.rows_max);
  step_.packed_bytes =
      model::PackedRowsBytesMax(step_.ffn_rows_max, step_.sizes.widest_input);
  ListFirstWeights();
  PlaceKv();
  PlaceScratch();
}

void Stage::ListFirstWeights() {
  for (const LoadedLayer& layer : weights_->layers()) {
    for (const LoadedOperation& operation : layer.operations) {
      first_weights_.push_back(std::visit(
          [](const auto& weights) { return FirstWeightsOf(weights); },
          operation));
    }
  }
  if (config_.holds_head) {
    first_weights_.push_back({&weights_->head()});
  }
}

void Stage::PlaceKv() {
  const std::vector<model::KvGroup> groups =
      model::KvGroupsOf(weights_->spec(), ShapeOf(config_));
  Carver carver(kv_.data(), kv_.bytes());
  kv_layers_.resize(weights_->layers().size());
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const int64_t layer : groups[group].layers) {
      const auto local = static_cast<size_t>(layer - config_.first_layer);
      const LoadedAttention* attention = AttentionOf(weights_->layers()[local]);
      MILLRACE_CHECK(attention != nullptr);
      KvLayer& kv = kv_layers_[local];
      kv.group = static_cast<int64_t>(group);
      kv.block_bytes = kernels::KvBlockBytes(
          config_.kv_type, attention->num_kv_heads, attention->head_dim);
      kv.pool = carver.Take(kv.block_bytes * groups[group].num_blocks);
    }
  }
  MILLRACE_CHECK(carver.used() == memory_.kv_bytes);
}

// Scratch of the attention kernel, one piece a thread; small beside the rest,
// so that the plan does not count it.
void Stage::PlaceAttentionScratch() {
  int64_t bytes = 0;
  for (const LoadedLayer& layer : weights_->layers()) {
    if (const LoadedAttention* op = AttentionOf(layer); op != nullptr) {
      bytes =
          std::max(bytes, kernels::AttentionScratchBytes(
                              op->num_heads, op->num_kv_heads, op->head_dim));
    }
  }
  attention_scratch_.resize(
      static_cast<size_t>(bytes * config_.num_threads + kScratchAlignment));
  void* base = attention_scratch_.data();
  size_t space = attention_scratch_.size();
  std::align(kScratchAlignment, 1, base, space);
  for (int thread = 0; thread < config_.num_threads; ++thread) {
    step_.attention_scratch.push_back(static_cast<std::byte*>(base) +
                                      thread * bytes);
  }
}

void Stage::PlaceScratch() {
  const int64_t rows = config_.rows_max;
  const model::ActivationSizes& sizes = step_.sizes;
  Carver carver(scratch_.data(), scratch_.bytes());
  ActivationBuffers& buffers = step_.buffers;
  buffers.hidden = carver.TakeFloats(rows * sizes.hidden);
  buffers.normed = carver.TakeFloats(rows * sizes.hidden);
  buffers.q = carver.TakeFloats(rows * sizes.q);
  buffers.attention = carver.TakeFloats(rows * sizes.q);
  buffers.k = carver.TakeFloats(rows * sizes.kv);
  buffers.v = carver.TakeFloats(rows * sizes.kv);
  buffers.gate = carver.TakeFloats(step_.ffn_rows_max * sizes.intermediate);
  buffers.up = carver.TakeFloats(step_.ffn_rows_max * sizes.intermediate);
  for (std::byte*& packed : buffers.packed) {
    packed = carver.Take(step_.packed_bytes);
  }
  buffers.rope_cos = carver.TakeFloats(rows * sizes.rope_pairs);
  buffers.rope_sin = carver.TakeFloats(rows * sizes.rope_pairs);
  buffers.router_scratch = carver.TakeFloats(sizes.experts);
  buffers.router_logits = carver.TakeFloats(rows * sizes.experts);
  buffers.chosen = carver.TakeInts(rows * sizes.experts_per_token);
  buffers.chosen_weights = carver.TakeFloats(rows * sizes.experts_per_token);
  buffers.choice_rows = carver.TakeInts(rows * sizes.experts_per_token);
  buffers.expert_ends = carver.TakeInts(sizes.experts);
  buffers.expert_out =
      carver.TakeFloats(rows * sizes.experts_per_token * sizes.hidden);
  if (config_.holds_head) {
    const int64_t logit_rows =
        model::LogitRowsMax(weights_->spec(), ShapeOf(config_));
    buffers.logits =
        carver.TakeFloats(logit_rows * weights_->spec().vocab_size);
    int32_t* const histories = carver.TakeInts(
        config_.slots *
        model::TokenHistorySizeOf(weights_->spec().vocab_size, config_.context)
            .numbers());
    head_ = std::make_unique<Head>(*weights_, config_, *options_.kernels,
                                   logit_rows, options_.tap, histories);
  }
  MILLRACE_CHECK(carver.used() + SamplersBytes(weights_->spec(), config_) ==
                 memory_.scratch_bytes);

  step_.rows.reserve(static_cast<size_t>(rows));
  step_.attention_rows.resize(static_cast<size_t>(sequences_.num_groups()));
  step_.store_blocks.resize(static_cast<size_t>(sequences_.num_groups()));
  for (size_t group = 0; group < step_.attention_rows.size(); ++group) {
    step_.attention_rows[group].resize(static_cast<size_t>(rows));
    step_.store_blocks[group].resize(static_cast<size_t>(rows));
  }
  PlaceAttentionScratch();
}

void Stage::Reset() {
  cancelled_.store(false, std::memory_order_relaxed);
  sequences_.Reset();
  if (head_ != nullptr) {
    head_->Reset();
  }
}

absl::Status Stage::TakeHidden(const transport::Frame& in) {
  const int64_t hidden = step_.sizes.hidden;
  if (config_.holds_embedding) {
    const LoadedMatrix& embedding = weights_->embedding();
    const int64_t tile_bytes =
        kernels::TileBytes(embedding.format, embedding.cols);
    for (size_t i = 0; i < in.rows.size(); ++i) {
      const int64_t token = in.rows[i].token;
      if (token < 0 || token >= embedding.rows) {
        return absl::DataLossError(
            absl::StrCat("token ", token, " is not in the vocabulary"));
      }
      kernels::DecodeTileRow(
          embedding.format,
          embedding.tiles + token / kernels::kTileRows * tile_bytes,
          static_cast<int>(token % kernels::kTileRows), hidden,
          step_.buffers.hidden + static_cast<int64_t>(i) * hidden);
    }
    return absl::OkStatus();
  }
  if (in.rows.empty()) {
    return absl::OkStatus();
  }
  if (in.tensors.size() != 1 ||
      in.tensors[0].kind != transport::TensorKind::kHidden ||
      in.tensors[0].rows != in.rows.size() || in.tensors[0].columns != hidden) {
    return absl::DataLossError(
        "the frame does not carry one hidden state for its rows");
  }
  std::memcpy(step_.buffers.hidden, in.tensors[0].data,
              in.rows.size() * static_cast<size_t>(hidden) * sizeof(float));
  return absl::OkStatus();
}

bool Stage::RunLayers(const transport::Frame& in) {
  const auto tap = [&](int64_t layer) {
    if (options_.tap != nullptr) {
      options_.tap->OnHidden(layer, in, step_.buffers.hidden, step_.num_rows(),
                             step_.sizes.hidden);
    }
  };
  ropes_.Fill(step_);
  size_t next = 0;
  for (size_t local = 0; local < weights_->layers().size(); ++local) {
    if (step_.is_cancelled()) {
      return false;
    }
    tap(config_.first_layer + static_cast<int64_t>(local));
    for (const LoadedOperation& operation :
         weights_->layers()[local].operations) {
      if (step_.is_cancelled()) {
        return false;
      }
      // After the last one the next frame begins anew.
      next = (next + 1) % first_weights_.size();
      step_.next_weights = first_weights_[next];
      if (const auto* attention = std::get_if<LoadedAttention>(&operation)) {
        RunAttention(step_, *attention, kv_layers_[local], ropes_);
      } else if (const auto* dense = std::get_if<LoadedDenseFfn>(&operation)) {
        RunDenseFfn(step_, *dense);
      } else {
        RunMoeFfn(step_, std::get<LoadedMoeFfn>(operation), experts_);
      }
    }
  }
  if (step_.is_cancelled()) {
    return false;
  }
  if (config_.holds_head) {
    step_.next_weights = first_weights_[0];
    tap(config_.last_layer + 1);
  }
  return true;
}

void Stage::PassOn(const transport::Frame& in, transport::Frame& out) {
  out.ops = in.ops;
  out.rows = in.rows;
  for (size_t i = 0; i < out.rows.size(); ++i) {
    if (step_.rows[i].failure != transport::RowFailure::kNone) {
      out.rows[i].flags |= transport::kRowFailed;
      out.rows[i].target = static_cast<int32_t>(step_.rows[i].failure);
    }
  }
  if (!out.rows.empty()) {
    transport::TensorView hidden;
    hidden.rows = static_cast<uint32_t>(out.rows.size());
    hidden.columns = static_cast<uint32_t>(step_.sizes.hidden);
    hidden.data = reinterpret_cast<const std::byte*>(step_.buffers.hidden);
    out.tensors.push_back(hidden);
  }
}

absl::Status Stage::Process(const transport::Frame& in, transport::Frame& out) {
  if (static_cast<int64_t>(in.rows.size()) > config_.rows_max) {
    return absl::DataLossError("the frame has more rows than the plan allows");
  }
  out.Clear();
  out.epoch = in.epoch;
  out.microbatch = in.microbatch;
  out.segment = in.segment + 1;
  MILLRACE_RETURN_IF_ERROR(sequences_.Apply(in.ops, ropes_));
  if (head_ != nullptr) {
    head_->Apply(in.ops);
  }
  MILLRACE_RETURN_IF_ERROR(sequences_.AddRows(in.rows, step_));
  MILLRACE_RETURN_IF_ERROR(TakeHidden(in));
  if (!in.rows.empty() && !RunLayers(in)) {
    return absl::CancelledError("the pass was cancelled");
  }
  if (head_ != nullptr) {
    head_->Run(step_, in, sequences_, out);
  } else {
    PassOn(in, out);
  }
  return step_.is_cancelled() ? absl::CancelledError("the pass was cancelled")
                              : absl::OkStatus();
}

}  // namespace millrace::worker
