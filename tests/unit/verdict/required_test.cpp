// SPDX-License-Identifier: Apache-2.0
// Names of --require that mean counters.
#include <gmock/gmock.h>

#include <string>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

/// The verdict of a healthy run whose node1 has one counter, which stands at `value`.
results::VerdictData required(const char* name, const char* counter, double value) {
  auto r = healthy();
  r.counters.push_back({first_case(r).path(), row_named(r, "node1"), counter, value, value});
  r.config["require"] = Json::array({name});
  return judge(r);
}

TEST(VerdictRequired, ANameOfACounterItsFirstWordOrItsFamily) {
  for (const auto& [name, counter] : {std::pair{"edac", "edac_ce"},
                                      {"edac_ce", "edac_ce:DIMM_A1"},
                                      {"driver", "driver_flow:rx_pause"},
                                      {"driver_errors", "driver_errors:rx_crc_errors_phy"},
                                      {"driver_errors:rx_*", "driver_errors:rx_crc_errors_phy"},
                                      {"thermal_throttle", "throttle_core"},
                                      {"nic", "rx_errors"},
                                      {"infiniband", "symbol_error"}}) {
    EXPECT_EQ(required(name, counter, 1).state, "PASS") << name << all_reasons(required(name, counter, 1));
    const auto unsupported = required(name, counter, results::not_taken);
    EXPECT_EQ(unsupported.state, "INCONCLUSIVE") << name;
    EXPECT_THAT(all_reasons(unsupported), HasSubstr(std::string(counter) + " of node1 is unsupported"));
  }
  for (const auto& [name, counter] : {std::pair{"driver_err", "driver_errors:rx_crc_errors_phy"},
                                      {"nic", "symbol_error"},
                                      {"infiniband", "rx_errors"}})
    EXPECT_THAT(all_reasons(required(name, counter, 1)), HasSubstr("counter has that name")) << name;
}

TEST(VerdictRequired, AnXidIsMeasuredWhereTheGpuReportsXids) {
  for (const char* name : {"xid", "xid*", "xid_79", "xid_*", "nvml_xid"}) {
    EXPECT_EQ(required(name, "nvml_xid", 0).state, "PASS") << name;
    EXPECT_THAT(all_reasons(required(name, "nvml_xid", results::not_taken)),
                HasSubstr("counter nvml_xid of node1 is unsupported"))
        << name;
    EXPECT_EQ(required(name, "nvml_energy_j", 0).state, "INCONCLUSIVE") << name;
  }
}

}  // namespace
}  // namespace assay
