assay_test(unit_verdict
  SOURCES verdict/accounting_test.cpp verdict/facts_test.cpp verdict/paths_test.cpp verdict/inventory_test.cpp verdict/limits_test.cpp verdict/limits_fleet_test.cpp verdict/shared_end_test.cpp verdict/coverage_test.cpp
          verdict/reference_test.cpp verdict/peers_test.cpp verdict/peer_stories_test.cpp verdict/groups_test.cpp verdict/impossible_test.cpp verdict/few_samples_test.cpp verdict/wide_test.cpp verdict/dips_test.cpp verdict/few_split_test.cpp verdict/many_metrics_test.cpp verdict/conclude_test.cpp verdict/core_share_test.cpp report/summary_test.cpp report/summary_cases_test.cpp report/layout_test.cpp report/decision_test.cpp verdict/storage_places_test.cpp verdict/lasting_test.cpp verdict/retest_interval_test.cpp verdict/skew_test.cpp verdict/required_test.cpp report/machine_test.cpp
  LINKS assay_verdict assay_simulate assay_report nlohmann_json::nlohmann_json
  LABELS unit LONG)
assay_test(unit_verdict_network
  SOURCES verdict/network_test.cpp verdict/network_faults_test.cpp verdict/network_switches_test.cpp verdict/network_small_test.cpp verdict/servers_test.cpp verdict/collectives_test.cpp verdict/collective_bounds_test.cpp verdict/rails_test.cpp
  LINKS assay_verdict assay_simulate nlohmann_json::nlohmann_json
  LABELS unit LONG SHARDS 2)
