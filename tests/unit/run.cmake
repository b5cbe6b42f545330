assay_test(unit_run SOURCES measure_test.cpp robust_test.cpp record_test.cpp planner_test.cpp selection_test.cpp confirming_test.cpp relaunch_test.cpp LINKS assay_run LABELS unit)
