#pragma once

#include <cstdint>

#include "planner/model_sheet.h"

namespace millrace::planner {

// Sizes of weights that are imported for streaming: kept as the source has
// them, or quantised anew.
enum class StoredAs { kKeep, kQ8_0, kQ4_0, kVq3 };

const char* NameOf(StoredAs format);

// One expert is one read: a header, gate, up and down, each aligned to 64
// bytes, in a record of whole 4 KiB. Bytes as kernels want them, so that a
// record is used where it was read to. 0: the layer has no experts.
int64_t RecordBytes(const LayerSheet& layer, StoredAs format);

// The record of an expert whose matrices and vectors are kept and take so many
// bytes in memory, > 0.
int64_t RecordOfKept(int64_t expert_bytes);

// vq3: codebooks that go with the records of a layer, held in memory.
int64_t CodebookBytes(const LayerSheet& layer, StoredAs format);

// A part with its matrices in another format; routers, vectors and rows that
// are no whole blocks stay as they are. Not for kVq3.
PartSheet Requantised(const PartSheet& part, StoredAs format);

// Whether every matrix of the layer's experts can be stored so.
bool CanStore(const LayerSheet& layer, StoredAs format);

}  // namespace millrace::planner
