// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Clock, ReadsTheFormsOfATimeThatToolsWrite) {
  const double noon = 1769860800;  // 2026-01-31T12:00:00Z
  EXPECT_EQ(iso_of(noon), "2026-01-31T12:00:00Z");
  for (const char* text :
       {"2026-01-31T12:00:00Z", "2026-01-31t12:00:00z", "2026-01-31 12:00:00", "2026-01-31T12:00",
        "2026-01-31T12:00Z", "2026-01-31T13:00+01", "2026-01-31T13:00:00+01", "2026-01-31T13:00:00+0100",
        "2026-01-31T13:00:00+01:00", "2026-01-31T06:30:00-05:30", "2026-01-31 12:00:00.000"})
    EXPECT_EQ(parse_iso(text), noon) << text;
  EXPECT_EQ(parse_iso("2026-01-31T12:00:00.25Z"), noon + 0.25);
  EXPECT_EQ(parse_iso("2026-01-31T12:00:00,250+00"), noon + 0.25);
}

TEST(Clock, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-01-31", "2026-01-31T12", "2026-01-31T12:", "2026-01-31T12:00:", "2026-01-31T12:00.5",
        "2026-02-30T12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60Z", "2026-01-31T12:00+1",
        "2026-01-31T12:00+01:", "2026-01-31T12:00+01:0", "2026-01-31T12:00+01:00Z", "2026-01-31T12:00 UTC",
        "2026-01-31T12:00ZZ", "12:00:00", "1769860800"})
    EXPECT_FALSE(parse_iso(text)) << text;
}

}  // namespace
}  // namespace assay
