assay_test(unit_topology
  SOURCES topology/probe_test.cpp topology/nics_test.cpp topology/smbios_test.cpp telemetry/counters_test.cpp telemetry/core_share_test.cpp topology/share_test.cpp
    topology/discover_test.cpp topology/gpu_bounds_test.cpp topology/launch_test.cpp topology/inventory_test.cpp topology/fabric_test.cpp base/affinity_test.cpp base/cgroup_test.cpp base/system_test.cpp topology_tree.cpp
  LINKS assay_telemetry assay_topology LABELS unit)
