# The storage suite: words, damage, directories, engines.
assay_test(unit_storage SOURCES ${CMAKE_CURRENT_LIST_DIR}/storage_word_test.cpp ${CMAKE_CURRENT_LIST_DIR}/storage_folder_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/storage_engine_test.cpp LINKS assay_suite_storage LABELS unit TIMEOUT 120)
