#pragma once

#include <cstdint>
#include <vector>

#include "model/spec/kv_format.h"
#include "model/spec/model_spec.h"

namespace millrace::model {

// What one stage allocates, as a pure function of the model and the stage's
// shape. The planner counts with it and the stage allocates by it, so that a
// plan's bytes are the worker's bytes.

struct StageShape {
  int64_t first_layer = 0;
  int64_t last_layer = 0;        // included
  bool holds_embedding = false;  // first stage
  bool holds_head = false;       // last stage
  KvFormat kv;
  int64_t context = 0;        // positions of one sequence, at most
  int64_t sequences = 1;      // worst cases the KV pools hold
  int64_t slots = 0;          // of sequences
  int64_t rows_max = 0;       // rows of one frame
  int64_t prefill_chunk = 0;  // rows of one sequence in one frame, at most
};

inline constexpr int64_t kKvBlockPositions = 64;

// KV of the layers of a stage that see equally far back. A window group keeps
// a ring of blocks: what its window and one prefill chunk can touch at once.
struct KvGroup {
  int64_t window = 0;               // 0: all positions
  int64_t blocks_per_sequence = 0;  // of one sequence's worst case
  int64_t num_blocks = 0;           // blocks_per_sequence * sequences
  std::vector<int64_t> layers;      // of the whole model, ascending
  int64_t block_bytes = 0;          // over all layers of the group
};

// Groups in ascending order of window, the unlimited one (0) first.
std::vector<KvGroup> KvGroupsOf(const ModelSpec& spec, const StageShape& shape);

// Bytes of one KV block of one layer: 64 positions of keys and values.
int64_t KvLayerBlockBytes(const AttentionOp& attention, const KvFormat& format);

// Rows whose logits are in memory at once on the last stage.
int64_t LogitRowsMax(const ModelSpec& spec, const StageShape& shape);

// Rows of a pass that are sampled at the same time: each has scratch of
// SamplerBytes(), however many threads there are. One row of the largest
// vocabularies takes 0.1 ms.
inline constexpr int64_t kSampledTogether = 8;
// Scratch of one sampler.
int64_t SamplerBytes(int64_t vocab_size);

// What the last stage keeps of the tokens of a sequence with penalties, in
// numbers of four bytes: id and count of the different ones, and a hash table
// over them. Every slot has room for one.
struct TokenHistorySize {
  int64_t entries = 0;
  int64_t table = 0;  // a power of two, at least twice the entries
  [[nodiscard]] int64_t numbers() const { return 2 * entries + table; }
};
TokenHistorySize TokenHistorySizeOf(int64_t vocab_size, int64_t tokens_max);
// Of all slots.
int64_t TokenHistoriesBytes(int64_t vocab_size, int64_t context, int64_t slots);

// Bytes that `rows` activation rows of `cols` elements take when packed for a
// product, in whichever form: the f32 one is the largest.
int64_t PackedRowsBytesMax(int64_t rows, int64_t cols);

// Sizes of the activation buffers, in elements of f32 unless said otherwise;
// maxima over the layers of the stage, per row of a frame.
struct ActivationSizes {
  int64_t hidden = 0;
  int64_t q = 0;             // num_heads * head_dim
  int64_t kv = 0;            // num_kv_heads * head_dim, for k and for v
  int64_t intermediate = 0;  // for gate and for up, per row of a feed-forward
  int64_t experts = 0;       // router logits
  int64_t experts_per_token = 0;
  int64_t widest_input = 0;  // cols of the widest product
  int64_t rope_pairs = 0;    // rotary_dims / 2, summed over DistinctRopes
};

// The different rotations among the layers of the stage, in order of first use.
// Layers of one rotation share its tables. Points into `spec`.
std::vector<const RopeSpec*> DistinctRopes(const ModelSpec& spec,
                                           const StageShape& shape);

ActivationSizes ActivationSizesOf(const ModelSpec& spec,
                                  const StageShape& shape);

// Rows that the buffers of a feed-forward hold: those of a frame, or of several
// experts that run together.
int64_t FfnRowsMax(const ActivationSizes& sizes, int64_t rows_max);

struct StageBytes {
  int64_t weights_bytes = 0;  // tiles and vectors
  int64_t kv_bytes = 0;       // pools
  int64_t scratch_bytes = 0;  // activations, logits, tables
  [[nodiscard]] int64_t total() const {
    return weights_bytes + kv_bytes + scratch_bytes;
  }
};
StageBytes StageBytesOf(const ModelSpec& spec, const StageShape& shape);
// Its parts. KV of `shape.sequences` worst cases.
int64_t StageWeightsBytes(const ModelSpec& spec, const StageShape& shape);
int64_t StageKvBytes(const ModelSpec& spec, const StageShape& shape);
int64_t StageScratchBytes(const ModelSpec& spec, const StageShape& shape);

// Weights alone: bytes of one layer as tiles, of the embedding, of norm and
// head.
int64_t LayerWeightBytes(const LayerSpec& layer);
int64_t EmbeddingWeightBytes(const ModelSpec& spec);
int64_t HeadWeightBytes(const ModelSpec& spec);
int64_t MatrixTileBytes(const Matrix& matrix);

}  // namespace millrace::model
