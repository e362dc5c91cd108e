#include "kernels/kernel_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace millrace::kernels {
namespace {

using testing::StrEq;

std::vector<Isa> HostIsas() {
  std::vector<Isa> isas;
  for (const KernelVersion& version : KernelVersions()) {
    if (HostSupports(version.isa) &&
        (isas.empty() || isas.back() != version.isa)) {
      isas.push_back(version.isa);
    }
  }
  return isas;
}

std::string VersionOf(const KernelTable& table, const std::string& kernel,
                      const std::string& format, const std::string& compute) {
  for (const KernelChoice& choice : DescribeKernels(table)) {
    if (kernel == choice.kernel && format == choice.format &&
        compute == choice.compute) {
      return choice.version;
    }
  }
  return "no such slot";
}

// Every slot of every table is listed once and has a version; a slot that is
// left out of the list changes the count.
TEST(KernelVersionsTest, DescribesEverySlotOnce) {
  for (const Isa isa : HostIsas()) {
    const KernelTable table = BuildKernelTable(isa);
    const std::vector<KernelChoice> choices = DescribeKernels(table);
    EXPECT_EQ(sizeof(KernelTable), (choices.size() + 1) * sizeof(AddFn));
    std::set<std::tuple<std::string, std::string, std::string>> names;
    for (const KernelChoice& choice : choices) {
      EXPECT_STRNE(choice.version, "") << choice.kernel << choice.format;
      EXPECT_TRUE(
          names.emplace(choice.kernel, choice.format, choice.compute).second)
          << choice.kernel << choice.format;
    }
  }
}

TEST(KernelVersionsTest, ScalarTableIsScalar) {
  for (const KernelChoice& choice :
       DescribeKernels(BuildKernelTable(Isa::kScalar))) {
    EXPECT_THAT(choice.version, StrEq("scalar")) << choice.kernel;
  }
}

// The name is that of the function in the slot, not of the table.
TEST(KernelVersionsTest, NamesTheFunctionInTheSlot) {
  KernelTable table = BuildKernelTable(BestIsa());
  if (BestIsa() != Isa::kScalar) {
    EXPECT_EQ(VersionOf(table, "rms_norm", "", ""), IsaName(BestIsa()));
  }
  table.rms_norm = BuildKernelTable(Isa::kScalar).rms_norm;
  EXPECT_EQ(VersionOf(table, "rms_norm", "", ""), "scalar");
  table.rms_norm = [](const RmsNormArgs&, int64_t, int64_t) {};
  EXPECT_EQ(VersionOf(table, "rms_norm", "", ""), "");
}

TEST(KernelVersionsTest, EveryIsaHasAVersionOfItsName) {
  std::set<std::string> names;
  for (const KernelVersion& version : KernelVersions()) {
    EXPECT_TRUE(names.insert(version.name).second) << version.name;
    EXPECT_TRUE(names.contains(IsaName(version.isa)))
        << version.name << " comes before " << IsaName(version.isa);
  }
}

#if defined(__x86_64__) && !defined(MILLRACE_SCALAR_KERNELS)

// The byte dot of 256 bits takes the fast products of quantised weights from
// AVX2 and nothing else, and leaves them to AVX-512.
TEST(KernelVersionsTest, ByteDotOf256BitsRunsFastQuantisedProducts) {
  const auto versions = KernelVersions();
  const auto byte_dot =
      std::find_if(versions.begin(), versions.end(), [](const auto& version) {
        return std::string(version.name) == "avxvnni";
      });
  ASSERT_NE(byte_dot, versions.end());
  EXPECT_EQ(byte_dot->isa, Isa::kAvx2);
  EXPECT_TRUE(
      std::any_of(byte_dot, versions.end(), [](const KernelVersion& version) {
        return version.isa == Isa::kAvx512;
      }));
  if (!byte_dot->host_supports()) {
    GTEST_SKIP() << "this processor has no avxvnni";
  }
  for (const KernelChoice& choice :
       DescribeKernels(BuildKernelTable(Isa::kAvx2))) {
    const std::string format = choice.format;
    const bool quantised = format != "f32" && format != "f16" &&
                           format != "bf16" && format != "fp8";
    const bool expected = std::string(choice.kernel) == "matmul" &&
                          std::string(choice.compute) == "fast" && quantised;
    EXPECT_EQ(std::string(choice.version) == "avxvnni", expected)
        << choice.kernel << " " << format << " " << choice.compute << ": "
        << choice.version;
  }
}

#endif

}  // namespace
}  // namespace millrace::kernels
