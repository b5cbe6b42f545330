assay_test(unit_page
  SOURCES report/page_test.cpp report/page_parts_test.cpp report/page_claims_test.cpp base/sha256_test.cpp
  LINKS assay_page assay_verdict nlohmann_json::nlohmann_json
  LABELS unit)
# The page of a build without the script: no_script.cpp comes before the library's script, which then is not linked.
assay_test(unit_page_still
  SOURCES report/page_still_test.cpp ${PROJECT_SOURCE_DIR}/src/report/html/no_script.cpp
  LINKS assay_page assay_verdict
  LABELS unit)
