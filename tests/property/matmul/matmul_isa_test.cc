// Every version of a product and of packing equals the scalar one bit for bit;
// provoked over generated shapes (1 to 40 tokens, odd group counts, absent
// rows, row lists, parts of the tiles, rows of many columns) and numbers of
// every kind: ordinary, subnormal, huge, zero, infinite and NaN, and ties of
// rounding.

#include <cmath>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul/activation_record.h"
#include "kernels/matmul/token_block.h"
#include "kernels/quant/tile.h"
#include "tests/property/tested_versions.h"
#include "tests/unit/kernels/matmul_case.h"

namespace millrace::kernels {
namespace {

constexpr uint32_t kSeed = 4001;

struct Parameter {
  std::string name;
  TestedVersion version;
  ComputeMode mode;
  WeightFormat format;
};

// gtest prints the parameter of a failed test.
void PrintTo(const Parameter& parameter, std::ostream* out) {
  *out << parameter.name;
}

// The products that each version implements; one parameter stands for a version
// that is not run.
std::vector<Parameter> Parameters() {
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  std::vector<Parameter> parameters;
  for (const TestedVersion& version : TestedVersions()) {
    if (!version.not_run.empty()) {
      parameters.push_back({version.name, version, {}, {}});
      continue;
    }
    for (const ComputeMode mode : {ComputeMode::kFast, ComputeMode::kExact}) {
      for (int format = 0; format < kNumWeightFormats; ++format) {
        const int row = static_cast<int>(mode);
        if (version.table.matmul[row][format] == scalar.matmul[row][format]) {
          continue;
        }
        parameters.push_back(
            {version.name +
                 (mode == ComputeMode::kFast ? "_fast_" : "_exact_") +
                 kWeightFormatTraits[static_cast<size_t>(format)].name,
             version, mode, static_cast<WeightFormat>(format)});
      }
    }
  }
  return parameters;
}

class MatMulIsaTest : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (!GetParam().version.not_run.empty()) {
      GTEST_SKIP() << GetParam().version.not_run;
    }
    scalar_ = BuildKernelTable(Isa::kScalar);
    version_ = GetParam().version.table;
    mode_ = GetParam().mode;
    format_ = GetParam().format;
  }

  MatMulShape RandomShape(int64_t tokens, std::mt19937& random) const {
    const int64_t elements = TraitsOf(format_).block_elements;
    int64_t cols = 0;
    if (format_ == WeightFormat::kFp8) {
      cols = 1 + random() % 400;  // up to four blocks of 128
    } else if (elements == 1) {
      cols = 1 + random() % 150;
    } else if (elements == 32) {
      cols = 32 * (1 + random() % 9);
    } else {
      cols = 256 * (1 + random() % 3);
    }
    const int64_t rows = 1 + random() % 100;
    return {format_, rows, cols, tokens, random() % 4 == 0};
  }

  void ExpectEqual(const MatMulCase& product) const {
    const std::vector<float> want = RunMatMul(scalar_, mode_, product);
    const std::vector<float> got = RunMatMul(version_, mode_, product);
    for (size_t i = 0; i < want.size(); ++i) {
      const size_t stride = static_cast<size_t>(product.shape.rows + 3);
      ASSERT_TRUE(SameBits(got[i], want[i]))
          << Describe(product.shape) << ": token " << i / stride << " row "
          << i % stride << " is " << got[i] << ", scalar " << want[i];
    }
  }

  KernelTable scalar_;
  KernelTable version_;
  ComputeMode mode_ = ComputeMode::kFast;
  WeightFormat format_ = WeightFormat::kF32;
};

INSTANTIATE_TEST_SUITE_P(All, MatMulIsaTest, testing::ValuesIn(Parameters()),
                         [](const testing::TestParamInfo<Parameter>& info) {
                           return info.param.name;
                         });

TEST_P(MatMulIsaTest, EqualsScalarForOrdinaryNumbers) {
  std::mt19937 random(kSeed);
  for (int64_t tokens = 1; tokens <= 40; ++tokens) {
    ExpectEqual(MatMulCase(RandomShape(tokens, random), Spread::kOrdinary,
                           Spread::kOrdinary, random));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(MatMulIsaTest, EqualsScalarForNumbersOfEveryKind) {
  std::mt19937 random(kSeed + 1);
  constexpr Spread kSpreads[] = {Spread::kOrdinary, Spread::kFinite,
                                 Spread::kAny};
  for (const Spread weights : kSpreads) {
    for (const Spread activations : kSpreads) {
      for (const int64_t tokens : {1, 2, 3, 4, 7, 11, 16, 17, 33}) {
        ExpectEqual(MatMulCase(RandomShape(tokens, random), weights,
                               activations, random));
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

// Rows so long that their activations do not stay in a cache beside weights:
// versions that cut the columns then put sums aside, which must change nothing.
// There are some on x86 alone, and emulation would take minutes.
#if defined(__x86_64__)
TEST_P(MatMulIsaTest, EqualsScalarWhereColumnsAreCut) {
  std::mt19937 random(kSeed + 4);
  const MatMulShape shape = {format_, 5, 12288, 60, true};
  const int64_t packed =
      shape.tokens *
      PackedTokenBytes(ActivationFormFor(mode_, format_), shape.cols);
  ASSERT_GT(packed, TokenBlockBytes());
  ExpectEqual(MatMulCase(shape, Spread::kOrdinary, Spread::kOrdinary, random));
}
#endif

// The largest sums of each format: extreme codes against +-127 everywhere.
TEST_P(MatMulIsaTest, EqualsScalarAtTheEndsOfTheIntegers) {
  std::mt19937 random(kSeed + 2);
  const int64_t elements = TraitsOf(format_).block_elements;
  if (elements == 1) {
    return;  // no integers in these
  }
  for (const uint8_t codes : {0x00, 0x77, 0x7f, 0x80, 0xff}) {
    for (const float sign : {-1.0f, 1.0f}) {
      for (const int64_t tokens : {1, 2, 5}) {
        const MatMulShape shape = {format_, 16, 3 * elements, tokens, false};
        MatMulCase product(shape, Spread::kOrdinary, Spread::kOrdinary, random);
        for (float& x : product.x) {
          x = 127 * sign;
        }
        const int64_t row_bytes = StoredRowBytes(format_, shape.cols);
        std::vector<std::byte> row =
            RandomRow(format_, shape.cols, Spread::kOrdinary, random);
        const int64_t block = TraitsOf(format_).block_bytes;
        const FloatBytes scale = FloatBytesOf(format_);
        for (int64_t i = 0; i < row_bytes; ++i) {
          if (i % block < scale.begin || i % block >= scale.end) {
            row[static_cast<size_t>(i)] = std::byte{codes};
          }
        }
        PackTile(format_, row.data(), 0, 16, shape.cols, product.tiles.data());
        ExpectEqual(product);
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

// What an int8 record holds, with NaN as a class.
void ExpectSameRecord(const std::byte* got, const std::byte* want,
                      int64_t index) {
  ActivationRecord a;
  ActivationRecord b;
  std::memcpy(&a, got, sizeof(a));
  std::memcpy(&b, want, sizeof(b));
  ASSERT_EQ(std::memcmp(a.q, b.q, sizeof(a.q)), 0) << "record " << index;
  ASSERT_TRUE(SameBits(a.d, b.d)) << "record " << index;
  ASSERT_TRUE(SameBits(a.m_float, b.m_float)) << "record " << index;
  ASSERT_EQ(a.m, b.m) << "record " << index;
  ASSERT_EQ(a.m1, b.m1) << "record " << index;
}

float PackedNumber(int trial, std::mt19937& random) {
  switch (trial % 4) {
    case 0:  // halves of 1/127 of the largest are ties of rounding
      return static_cast<float>(random() % 255) / 2;
    case 1:  // around 2^-100, below which a group counts as zero
      return std::ldexp(static_cast<float>(random() % 9), -103);
    default:
      return RandomFloat(static_cast<Spread>(trial % 3), random);
  }
}

class PackIsaTest : public testing::TestWithParam<TestedVersion> {};

INSTANTIATE_TEST_SUITE_P(All, PackIsaTest, testing::ValuesIn(TestedVersions()),
                         [](const testing::TestParamInfo<TestedVersion>& info) {
                           return info.param.name;
                         });

TEST_P(PackIsaTest, EqualsScalarInEveryForm) {
  if (!GetParam().not_run.empty()) {
    GTEST_SKIP() << GetParam().not_run;
  }
  std::mt19937 random(kSeed + 3);
  const KernelTable scalar = BuildKernelTable(Isa::kScalar);
  const KernelTable& version = GetParam().table;
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t tokens = 1 + random() % 40;
    const int64_t cols = 1 + random() % 200;
    std::vector<float> x(static_cast<size_t>(tokens * cols));
    for (float& value : x) {
      value = PackedNumber(trial, random);
    }
    for (int form = 0; form < kNumActivationForms; ++form) {
      const int64_t bytes = PackedActivationBytes(
          static_cast<ActivationForm>(form), tokens, cols);
      AlignedBytes want(bytes);
      AlignedBytes got(bytes);
      PackActivationsArgs args = {x.data(), cols, nullptr,
                                  tokens,   cols, want.data()};
      scalar.pack_activations[form](args, 0, NumPanels(tokens));
      args.packed = got.data();
      version.pack_activations[form](args, 0, NumPanels(tokens));
      const int64_t used =
          tokens * PackedTokenBytes(static_cast<ActivationForm>(form), cols);
      if (static_cast<ActivationForm>(form) != ActivationForm::kInt8) {
        ASSERT_EQ(
            std::memcmp(want.data(), got.data(), static_cast<size_t>(used)), 0);
        continue;
      }
      constexpr int64_t kBytes = sizeof(ActivationRecord);
      for (int64_t at = 0; at < used; at += kBytes) {
        ExpectSameRecord(got.data() + at, want.data() + at, at / kBytes);
      }
    }
  }
}

}  // namespace
}  // namespace millrace::kernels
