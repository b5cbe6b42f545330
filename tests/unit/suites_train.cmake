# The training suite: source, model, votes, plan.
assay_test(unit_train SOURCES ${CMAKE_CURRENT_LIST_DIR}/train_test.cpp ${CMAKE_CURRENT_LIST_DIR}/train_source_test.cpp ${CMAKE_CURRENT_LIST_DIR}/train_gpt_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/train_checkpoint_test.cpp ${CMAKE_CURRENT_LIST_DIR}/train_plan_test.cpp ${CMAKE_CURRENT_LIST_DIR}/train_audit_test.cpp
  LINKS assay_suite_train LABELS unit SHARDS 2)
target_include_directories(unit_train PRIVATE ${PROJECT_SOURCE_DIR}/tests/kernels)
