// SPDX-License-Identifier: Apache-2.0
// libFuzzer's way in. ASSAY_FUZZ_TARGET is the function to call. An exception nobody may throw ends the
// process, which is what the fuzzer looks for.
#include "base/error.hpp"
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::fuzz::ASSAY_FUZZ_TARGET(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
