assay_test(unit_verdict
  SOURCES verdict_accounting_test.cpp verdict_facts_test.cpp verdict_paths_test.cpp verdict_inventory_test.cpp verdict_limits_test.cpp verdict_shared_end_test.cpp verdict_coverage_test.cpp
          verdict_reference_test.cpp verdict_peers_test.cpp verdict_groups_test.cpp verdict_impossible_test.cpp verdict_few_samples_test.cpp verdict_conclude_test.cpp report_test.cpp
  LINKS assay_verdict assay_report nlohmann_json::nlohmann_json
  LABELS unit)
assay_test(unit_verdict_network
  SOURCES verdict_network_test.cpp verdict_collectives_test.cpp verdict_rails_test.cpp
  LINKS assay_verdict nlohmann_json::nlohmann_json
  LABELS unit SHARDS 2)
