// Writes a small random model as a GGUF file: what the demo falls back to where
// no real model can be had, and what the integration tests run on. Its answers
// make no sense and are always the same.
//   tiny_model --out FILE.gguf [--layers N] [--context N] [--seed N]

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/tiny_models.h"

int main(int argc, char** argv) {
  using millrace::testing::TinyModel;
  TinyModel model;
  model.family = millrace::testing::TinyFamily::kLlama;
  model.format = millrace::kernels::WeightFormat::kBf16;
  model.num_layers = 6;
  model.vocab_size = 4096;
  model.context_length = 4096;
  std::string out;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--out") == 0) {
      out = argv[i + 1];
    } else if (std::strcmp(argv[i], "--layers") == 0) {
      model.num_layers = std::atoll(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--context") == 0) {
      model.context_length = std::atoll(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--width") == 0) {
      model.hidden_size = std::atoll(argv[i + 1]);
      model.intermediate_size = 4 * model.hidden_size;
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      model.seed = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    }
  }
  if (out.empty()) {
    std::fprintf(stderr,
                 "usage: tiny_model --out FILE.gguf [--layers N] "
                 "[--context N] [--width N] [--seed N]\n");
    return 2;
  }
  millrace::testing::WriteTinyGguf(model, out);
  return 0;
}
