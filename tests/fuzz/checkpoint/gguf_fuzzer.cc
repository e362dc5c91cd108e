// Any bytes as a GGUF file: opening accepts or refuses, and what is accepted
// lies inside the file. Failures are crashes, sanitizer reports and hangs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/gguf_vocabulary_reader.h"
#include "tests/fuzz/checkpoint/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const millrace::testing::MemoryFile file(data, size);
  const auto checkpoint = millrace::model::Checkpoint::Open(file.path());
  if (!checkpoint.ok() && millrace::ExitCodeOf(checkpoint.status()) != 4) {
    std::abort();
  }
  const auto vocabulary = millrace::model::ReadGgufVocabulary(file.path());
  if (!vocabulary.ok() && millrace::ExitCodeOf(vocabulary.status()) != 4) {
    std::abort();
  }
  return 0;
}
