assay_test(unit_topology
  SOURCES topology_probe_test.cpp topology_nics_test.cpp topology_smbios_test.cpp topology_counters_test.cpp topology_share_test.cpp
    topology_discover_test.cpp topology_launch_test.cpp topology_inventory_test.cpp topology_fabric_test.cpp system_test.cpp topology_tree.cpp
  LINKS assay_telemetry assay_topology LABELS unit)
