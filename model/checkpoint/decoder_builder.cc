#include "model/checkpoint/decoder_builder.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "model/checkpoint/tensor_names.h"

namespace millrace::model {
namespace {

constexpr char kDivisorsName[] = "rope_freqs.weight";

class DecoderBuilder {
 public:
  DecoderBuilder(const DecoderConfig& config, const TensorSupply& tensors)
      : config_(config), tensors_(tensors) {}

  absl::StatusOr<ModelSpec> Build();

 private:
  [[nodiscard]] std::string Name(LayerPart part, int64_t layer) const {
    return TensorName(config_.style, part, layer);
  }
  absl::StatusOr<RmsNormSpec> Norm(const std::string& name, int64_t size) const;
  absl::StatusOr<LinearSpec> Linear(LayerPart part, int64_t layer, int64_t rows,
                                    int64_t cols, BiasRule rule) const;
  absl::StatusOr<RopeSpec> Rope() const;
  absl::StatusOr<AttentionOp> Attention(int64_t layer) const;
  absl::StatusOr<DenseFfnOp> DenseFfn(int64_t layer) const;
  absl::StatusOr<MoeFfnOp> MoeFfn(int64_t layer) const;
  absl::StatusOr<ExpertSpec> Expert(int64_t layer, int64_t expert) const;
  absl::StatusOr<ExpertSpec> SeparateExpert(int64_t layer,
                                            int64_t expert) const;
  // One expert's rows of a tensor that holds all experts.
  absl::StatusOr<Matrix> ExpertRows(LayerPart part, int64_t layer,
                                    int64_t expert, bool second_half) const;
  absl::Status AddHead(ModelSpec& spec) const;

  const DecoderConfig& config_;
  const TensorSupply& tensors_;
};

absl::StatusOr<RmsNormSpec> DecoderBuilder::Norm(const std::string& name,
                                                 int64_t size) const {
  RmsNormSpec out;
  MILLRACE_ASSIGN_OR_RETURN(out.weight, tensors_.TakeVector(name, size));
  out.eps = config_.eps;
  return out;
}

absl::StatusOr<LinearSpec> DecoderBuilder::Linear(LayerPart part, int64_t layer,
                                                  int64_t rows, int64_t cols,
                                                  BiasRule rule) const {
  LinearSpec out;
  MILLRACE_ASSIGN_OR_RETURN(out.weight,
                            tensors_.TakeMatrix(Name(part, layer), rows, cols));
  const std::string bias = BiasName(config_.style, part, layer);
  if (rule == BiasRule::kRequired ||
      (rule == BiasRule::kIfPresent && tensors_.Has(bias))) {
    MILLRACE_ASSIGN_OR_RETURN(out.bias, tensors_.TakeVector(bias, rows));
  }
  return out;
}

absl::StatusOr<RopeSpec> DecoderBuilder::Rope() const {
  RopeSpec out = config_.rope;
  if (config_.rope_divisors && tensors_.Has(kDivisorsName)) {
    MILLRACE_ASSIGN_OR_RETURN(
        out.divisors, tensors_.TakeVector(kDivisorsName, out.rotary_dims / 2));
  }
  return out;
}

absl::StatusOr<AttentionOp> DecoderBuilder::Attention(int64_t layer) const {
  const DecoderConfig& c = config_;
  const int64_t query_rows = c.num_heads * c.head_dim;
  const int64_t key_rows = c.num_kv_heads * c.head_dim;
  AttentionOp op;
  op.num_heads = c.num_heads;
  op.num_kv_heads = c.num_kv_heads;
  op.head_dim = c.head_dim;
  op.window = c.windows[static_cast<size_t>(layer)];
  MILLRACE_ASSIGN_OR_RETURN(
      op.norm, Norm(Name(LayerPart::kAttentionNorm, layer), c.hidden_size));
  MILLRACE_ASSIGN_OR_RETURN(op.q, Linear(LayerPart::kQuery, layer, query_rows,
                                         c.hidden_size, c.qkv_bias));
  MILLRACE_ASSIGN_OR_RETURN(op.k, Linear(LayerPart::kKey, layer, key_rows,
                                         c.hidden_size, c.qkv_bias));
  MILLRACE_ASSIGN_OR_RETURN(op.v, Linear(LayerPart::kValue, layer, key_rows,
                                         c.hidden_size, c.qkv_bias));
  MILLRACE_ASSIGN_OR_RETURN(
      op.o, Linear(LayerPart::kOutput, layer, c.hidden_size, query_rows,
                   c.output_bias));
  if (c.qk_norm) {
    MILLRACE_ASSIGN_OR_RETURN(
        op.q_norm, Norm(Name(LayerPart::kQueryNorm, layer), c.head_dim));
    MILLRACE_ASSIGN_OR_RETURN(
        op.k_norm, Norm(Name(LayerPart::kKeyNorm, layer), c.head_dim));
  }
  if (c.rotated[static_cast<size_t>(layer)]) {
    MILLRACE_ASSIGN_OR_RETURN(op.rope, Rope());
  }
  return op;
}

absl::StatusOr<DenseFfnOp> DecoderBuilder::DenseFfn(int64_t layer) const {
  const DecoderConfig& c = config_;
  DenseFfnOp op;
  op.intermediate_size = c.intermediate_size;
  MILLRACE_ASSIGN_OR_RETURN(
      op.norm, Norm(Name(LayerPart::kFfnNorm, layer), c.hidden_size));
  MILLRACE_ASSIGN_OR_RETURN(op.gate,
                            Linear(LayerPart::kGate, layer, c.intermediate_size,
                                   c.hidden_size, c.ffn_bias));
  MILLRACE_ASSIGN_OR_RETURN(
      op.up, Linear(LayerPart::kUp, layer, c.intermediate_size, c.hidden_size,
                    c.ffn_bias));
  MILLRACE_ASSIGN_OR_RETURN(op.down,
                            Linear(LayerPart::kDown, layer, c.hidden_size,
                                   c.intermediate_size, c.ffn_bias));
  return op;
}

absl::StatusOr<ExpertSpec> DecoderBuilder::SeparateExpert(
    int64_t layer, int64_t expert) const {
  const int64_t inner = config_.moe->intermediate_size;
  const int64_t hidden = config_.hidden_size;
  ExpertSpec out;
  MILLRACE_ASSIGN_OR_RETURN(
      out.gate, tensors_.TakeMatrix(ExpertName(LayerPart::kGate, layer, expert),
                                    inner, hidden));
  MILLRACE_ASSIGN_OR_RETURN(
      out.up, tensors_.TakeMatrix(ExpertName(LayerPart::kUp, layer, expert),
                                  inner, hidden));
  MILLRACE_ASSIGN_OR_RETURN(
      out.down, tensors_.TakeMatrix(ExpertName(LayerPart::kDown, layer, expert),
                                    hidden, inner));
  return out;
}

absl::StatusOr<Matrix> DecoderBuilder::ExpertRows(LayerPart part, int64_t layer,
                                                  int64_t expert,
                                                  bool second_half) const {
  const int64_t inner = config_.moe->intermediate_size;
  const bool down =
      part == LayerPart::kFusedDown || part == LayerPart::kSwitchDown;
  SliceRequest request;
  request.name = Name(part, layer);
  request.num_slices = config_.moe->num_experts;
  request.slice = expert;
  request.rows = down ? config_.hidden_size : inner;
  request.cols = down ? inner : config_.hidden_size;
  request.slice_rows =
      part == LayerPart::kFusedGateUp ? 2 * inner : request.rows;
  request.row_begin = second_half ? inner : 0;
  return tensors_.TakeSlice(request);
}

absl::StatusOr<ExpertSpec> DecoderBuilder::Expert(int64_t layer,
                                                  int64_t expert) const {
  const bool gate_up = tensors_.Has(Name(LayerPart::kFusedGateUp, layer));
  const bool hugging_face = config_.style == NameStyle::kHuggingFace;
  const bool switched =
      hugging_face && tensors_.Has(Name(LayerPart::kSwitchGate, layer));
  if (hugging_face && !gate_up && !switched) {
    return SeparateExpert(layer, expert);
  }
  const LayerPart gate = switched  ? LayerPart::kSwitchGate
                         : gate_up ? LayerPart::kFusedGateUp
                                   : LayerPart::kFusedGate;
  const LayerPart up = switched  ? LayerPart::kSwitchUp
                       : gate_up ? LayerPart::kFusedGateUp
                                 : LayerPart::kFusedUp;
  const LayerPart down =
      switched ? LayerPart::kSwitchDown : LayerPart::kFusedDown;
  ExpertSpec out;
  MILLRACE_ASSIGN_OR_RETURN(out.gate, ExpertRows(gate, layer, expert, false));
  MILLRACE_ASSIGN_OR_RETURN(out.up, ExpertRows(up, layer, expert, up == gate));
  MILLRACE_ASSIGN_OR_RETURN(out.down, ExpertRows(down, layer, expert, false));
  return out;
}

absl::StatusOr<MoeFfnOp> DecoderBuilder::MoeFfn(int64_t layer) const {
  const MoeConfig& moe = *config_.moe;
  MoeFfnOp op;
  op.experts_per_token = moe.experts_per_token;
  op.expert_intermediate_size = moe.intermediate_size;
  op.renormalise = moe.renormalise;
  MILLRACE_ASSIGN_OR_RETURN(
      op.norm, Norm(Name(LayerPart::kFfnNorm, layer), config_.hidden_size));
  MILLRACE_ASSIGN_OR_RETURN(
      op.router, tensors_.TakeMatrix(Name(LayerPart::kRouter, layer),
                                     moe.num_experts, config_.hidden_size));
  for (int64_t expert = 0; expert < moe.num_experts; ++expert) {
    MILLRACE_ASSIGN_OR_RETURN(ExpertSpec spec, Expert(layer, expert));
    op.experts.push_back(std::move(spec));
  }
  return op;
}

absl::Status DecoderBuilder::AddHead(ModelSpec& spec) const {
  const std::string name = TensorName(config_.style, GlobalPart::kHead);
  spec.head_is_embedding = config_.tied.value_or(!tensors_.Has(name));
  if (spec.head_is_embedding) {
    spec.head = spec.embedding;
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      spec.head,
      tensors_.TakeMatrix(name, config_.vocab_size, config_.hidden_size));
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> DecoderBuilder::Build() {
  ModelSpec spec;
  spec.family = config_.family;
  spec.hidden_size = config_.hidden_size;
  spec.vocab_size = config_.vocab_size;
  spec.context_length = config_.context_length;
  MILLRACE_ASSIGN_OR_RETURN(
      spec.embedding,
      tensors_.TakeMatrix(TensorName(config_.style, GlobalPart::kEmbedding),
                          config_.vocab_size, config_.hidden_size));
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    LayerSpec out;
    MILLRACE_ASSIGN_OR_RETURN(AttentionOp attention, Attention(layer));
    out.operations.emplace_back(std::move(attention));
    if (config_.moe.has_value() &&
        config_.moe->sparse[static_cast<size_t>(layer)]) {
      MILLRACE_ASSIGN_OR_RETURN(MoeFfnOp ffn, MoeFfn(layer));
      out.operations.emplace_back(std::move(ffn));
    } else {
      MILLRACE_ASSIGN_OR_RETURN(DenseFfnOp ffn, DenseFfn(layer));
      out.operations.emplace_back(std::move(ffn));
    }
    spec.layers.push_back(std::move(out));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      spec.final_norm, Norm(TensorName(config_.style, GlobalPart::kFinalNorm),
                            config_.hidden_size));
  MILLRACE_RETURN_IF_ERROR(AddHead(spec));
  return spec;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildDecoder(const DecoderConfig& config,
                                       const TensorSupply& tensors) {
  return DecoderBuilder(config, tensors).Build();
}

}  // namespace millrace::model
