# SPDX-License-Identifier: Apache-2.0
assay_test(unit_guard SOURCES guard_collector_test.cpp guard_hang_attribution_test.cpp guard_connections_test.cpp guard_wire_test.cpp guard_rendezvous_test.cpp guard_reception_test.cpp
  LINKS assay_guard LABELS unit)
