# The storage suite: words, damage, directories, engines.
assay_test(unit_storage SOURCES suites/storage_word_test.cpp suites/storage_folder_test.cpp
  suites/storage_engine_test.cpp suites/storage_transfer_test.cpp suites/storage_place_test.cpp suites/storage_step_cost_test.cpp
  suites/storage_servers_test.cpp suites/storage_plan_test.cpp measure/cold_test.cpp LINKS assay_suite_storage LABELS unit TIMEOUT 120)
