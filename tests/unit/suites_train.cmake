# The training suite: source, model, votes, plan.
assay_test(unit_train SOURCES suites/train_test.cpp suites/train_source_test.cpp suites/train_gpt_test.cpp
  suites/train_checkpoint_test.cpp suites/train_files_test.cpp suites/train_plan_test.cpp suites/train_audit_test.cpp
  LINKS assay_suite_train LABELS unit SHARDS 2)
target_include_directories(unit_train PRIVATE ${PROJECT_SOURCE_DIR}/tests/kernels)
