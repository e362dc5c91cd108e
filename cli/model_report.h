#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "base/json.h"
#include "boost/json/object.hpp"
#include "model/spec/model_spec.h"

namespace millrace::cli {

// What `inspect` says about a model: sizes, bytes per layer and format, KV
// bytes. Keys of the document:
//   name, family, digest, layers (their number), hidden_size, vocab_size,
//   context_length, parameters, parameters_active (per token), stored_bytes,
//   weights_bytes (in memory, as tiles), bytes_by_format {format: stored
//   bytes}, kv_bytes_per_token (2-byte values), state_bytes_per_sequence,
//   head_is_embedding, stop_tokens, bos_token,
//   embedding, head {stored_bytes, weights_bytes, format},
//   layer_details [{layer, kind, parameters, stored_bytes, weights_bytes,
//   bytes_by_format, kv_bytes_per_token, window, rotation}]
boost::json::object ModelReport(const model::ModelSpec& spec);

// Every tensor in the order of the model: name, file, offset, bytes, format,
// shape, layer (null outside of layers). A weight in parts names its codes so,
// and in `parts` [{name, file, offset, bytes}] its scales and what more it has.
boost::json::array TensorReport(const model::ModelSpec& spec,
                                absl::Span<const std::string> files);

// For people; made from the documents above, also with what the command adds.
std::string ModelReportText(const boost::json::object& report);

}  // namespace millrace::cli
