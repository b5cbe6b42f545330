# SPDX-License-Identifier: Apache-2.0
assay_test(unit_burn SOURCES suites/burn_schedule_test.cpp suites/burner_test.cpp telemetry/power_test.cpp telemetry/periodic_sampler_test.cpp LINKS assay_suite_burn assay_measure assay_telemetry LABELS unit)
