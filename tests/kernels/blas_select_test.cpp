// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>

#include <string>

#include "base/child_process.hpp"
#include "device/blas.hpp"
#include "device/blas_policy.hpp"
#include "device/device.hpp"

namespace assay {
namespace {

using kernels::host::Isa;

TEST(BlasPolicy, RequiresTheVectorWidthOfTheCpu) {
  EXPECT_EQ(wanted_blas_core("Prescott", Isa::avx512), "SkylakeX");
  EXPECT_EQ(wanted_blas_core("Haswell", Isa::avx512), "SkylakeX");
  EXPECT_EQ(wanted_blas_core("Prescott", Isa::avx2), "Haswell");
  EXPECT_EQ(wanted_blas_core("Sandybridge", Isa::avx2), "Haswell");
  EXPECT_EQ(wanted_blas_core("SkylakeX", Isa::avx512), "");
  EXPECT_EQ(wanted_blas_core("Cooperlake", Isa::avx512), "");
  EXPECT_EQ(wanted_blas_core("SapphireRapids", Isa::avx512), "");
  EXPECT_EQ(wanted_blas_core("Haswell", Isa::avx2), "");
  EXPECT_EQ(wanted_blas_core("Zen", Isa::avx2), "");
  EXPECT_EQ(wanted_blas_core("Prescott", Isa::generic), "");
  EXPECT_EQ(wanted_blas_core("", Isa::avx512), "") << "no OpenBLAS, nothing to select";
}

/// What blas_child prints in a fresh process with the given environment.
std::string child(const std::string& environment) {
  const CapturedOutput out;
  ChildProcess shell("a shell", [&] {
    out.redirect(STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", (environment + " '" ASSAY_BLAS_CHILD "' one two").c_str(), nullptr);
    return 127;
  });
  shell.wait();
  return out.text();
}

/// The library's own choice stands, unless it is older than the CPU; then the child must have started itself
/// again.
TEST(BlasSelect, AChildEndsWithKernelsAsWideAsTheCpu) {
  if (openblas_core().empty()) GTEST_SKIP() << "the BLAS is not OpenBLAS";
  const std::string out = child("env -u OPENBLAS_CORETYPE -u ASSAY_BLAS_MEND");
  const auto at = out.find("core=");
  ASSERT_NE(at, std::string::npos) << out;
  const std::string core = out.substr(at + 5, out.find(' ', at) - at - 5);
  EXPECT_EQ(wanted_blas_core(core, kernels::host::cpu_isa()), "") << out;
  EXPECT_NE(out.find("arguments=2"), std::string::npos) << "the new program got other arguments: " << out;
  EXPECT_NE(out.find("name=blas_child\n"), std::string::npos) << "`ps` calls it otherwise: " << out;
}

TEST(BlasSelect, TheUsersChoiceIsKept) {
  if (openblas_core().empty()) GTEST_SKIP() << "the BLAS is not OpenBLAS";
  const std::string out = child("env -u ASSAY_BLAS_MEND OPENBLAS_CORETYPE=Prescott");
  EXPECT_NE(out.find("core=Prescott mend=."), std::string::npos) << out;
}

TEST(BlasSelect, ASelectionThatDidNotHelpIsRecordedAndNotRepeated) {
  if (openblas_core().empty()) GTEST_SKIP() << "the BLAS is not OpenBLAS";
  if (kernels::host::cpu_isa() == Isa::generic) GTEST_SKIP() << "this CPU has no wider kernels";
  const std::string out = child("env 'ASSAY_BLAS_MEND=Prescott->SkylakeX' OPENBLAS_CORETYPE=Prescott");
  EXPECT_NE(out.find("core=Prescott mend=failed:Prescott->SkylakeX."), std::string::npos) << out;
}

}  // namespace
}  // namespace assay
