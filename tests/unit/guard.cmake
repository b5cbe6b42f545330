# SPDX-License-Identifier: Apache-2.0
assay_test(unit_guard SOURCES guard/collector_test.cpp guard/hang_attribution_test.cpp guard/connections_test.cpp guard/wire_test.cpp guard/rendezvous_test.cpp guard/reception_test.cpp
  LINKS assay_guard LABELS unit)
