# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts down: the program, its manual page and shell completion, the schema, the scripts of a site, and the
# libraries that read and judge a results file as the package `assay` (find_package(assay), assay::verdict).
include(CMakePackageConfigHelpers)

install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The program writes its own completion and manual page.
install(CODE "
  foreach(text \"completion bash|${CMAKE_INSTALL_DATADIR}/bash-completion/completions/assay\" \"man|${CMAKE_INSTALL_MANDIR}/man1/assay.1\")
    string(REGEX REPLACE \"\\\\|.*\" \"\" arguments \"\${text}\")
    string(REGEX REPLACE \".*\\\\|\" \"\" file \"\${text}\")
    separate_arguments(arguments)
    execute_process(COMMAND \"$<TARGET_FILE:assay>\" \${arguments} OUTPUT_VARIABLE content RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
      message(FATAL_ERROR \"assay \${arguments}: exit code \${code}\")
    endif()
    file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${file}\" \"\${content}\")
  endforeach()
")

# Scripts of a site, and what starts them; those files name the place they are installed to.
set(scripts_dir ${CMAKE_INSTALL_DATADIR}/assay/scripts)
install(PROGRAMS scripts/nightly.sh scripts/acceptance.sh scripts/soak.sh scripts/batch.sh scripts/gpu_acceptance.sh DESTINATION ${scripts_dir})
install(FILES scripts/site.sh scripts/safe.sh scripts/launch.sh scripts/site.conf DESTINATION ${scripts_dir})
install(DIRECTORY scripts/slurm scripts/reframe DESTINATION ${scripts_dir} USE_SOURCE_PERMISSIONS)
install(FILES scripts/systemd/assay-nightly.timer DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/systemd)
install(CODE "
  set(ASSAY_SCRIPTS \"\${CMAKE_INSTALL_PREFIX}/${scripts_dir}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/scripts/systemd/assay-nightly.service.in\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/assay/systemd/assay-nightly.service\" @ONLY)
  configure_file(\"${PROJECT_SOURCE_DIR}/scripts/cron/assay-nightly.in\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/assay/cron/assay-nightly\" @ONLY)
")

install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY results-schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/results-schema
  FILES_MATCHING PATTERN "*.json" PATTERN "*.md")

# The static libraries that the named one needs, itself included.
function(assay_closure target result)
  set(found ${${result}})
  if(NOT target IN_LIST found)
    list(APPEND found ${target})
    get_target_property(links ${target} LINK_LIBRARIES)
    foreach(link IN LISTS links)
      if(TARGET "${link}" AND link MATCHES "^assay_")
        get_target_property(kind ${link} TYPE)
        if(kind STREQUAL "STATIC_LIBRARY")
          assay_closure(${link} found)
        endif()
      endif()
    endforeach()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(libraries "")
foreach(library assay_base assay_results assay_verdict assay_report)
  if(TARGET ${library})
    assay_closure(${library} libraries)
  endif()
endforeach()
foreach(library IN LISTS libraries)
  string(REPLACE "assay_" "" short ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${short})
  add_library(assay::${short} ALIAS ${library})
  install(DIRECTORY src/${short} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/assay/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/assay)
install(TARGETS ${libraries} EXPORT assayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${package_dir})
configure_package_config_file(ci/cmake/assayConfig.cmake.in ${PROJECT_BINARY_DIR}/assayConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/assayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
  DESTINATION ${package_dir})
