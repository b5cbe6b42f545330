# SPDX-License-Identifier: Apache-2.0
assay_test(unit_supervisor SOURCES supervisor/collector_test.cpp supervisor/collector_deadline_test.cpp supervisor/collector_idle_test.cpp supervisor/collector_files_test.cpp supervisor/collector_stall_test.cpp supervisor/collector_losses_test.cpp supervisor/hang_attribution_test.cpp supervisor/connections_test.cpp supervisor/wire_test.cpp supervisor/rendezvous_test.cpp supervisor/reception_test.cpp supervisor/route_test.cpp supervisor/supervisor_loop_test.cpp supervisor/parts_test.cpp
  LINKS assay_supervisor LABELS unit)
