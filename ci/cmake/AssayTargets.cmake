# SPDX-License-Identifier: Apache-2.0
# How targets of this project are declared.

# Flags every target of assay compiles with, and nobody else.
add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "text" + std::string is taken for an overlapping copy.
  target_compile_options(assay_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(ASSAY_WERROR)
  target_compile_options(assay_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Its memory is tidied up less often: a tenth of the compile time.
  target_compile_options(assay_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=100 --param ggc-min-heapsize=400000>")
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer)
  if(ASSAY_SANITIZE_NOT)
    target_compile_options(assay_options INTERFACE -fno-sanitize=${ASSAY_SANITIZE_NOT})
  endif()
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()

# The JSON and standard headers are much of the compile time. One precompiled header serves all sources that are compiled
# alike; the executable that carries it does nothing.
function(assay_header name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;LINKS;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/header.cpp CONTENT "int main() {}\n")
  add_executable(${name} EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/header.cpp)
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE assay_options ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS} ${PROJECT_SOURCE_DIR}/src/base/json.hpp
    <algorithm> <cmath> <filesystem> <functional> <map> <memory> <string> <vector>)
endfunction()
set(assay_cold_options $<$<CONFIG:Release>:-O1>)
assay_header(assay_header OPTIONS -fPIC)
assay_header(assay_header_cold OPTIONS -fPIC ${assay_cold_options})

# Sources of a target are compiled together, some at a time (ASSAY_UNITY): what their headers cost is paid once for each lot. No two
# sources of one target may therefore define the same name in their unnamed namespaces; each still compiles alone (-DASSAY_UNITY=OFF).
function(assay_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ASSAY_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# assay_library(name [COLD] SOURCES a.cpp ... LINKS libs...): a static library of one layer. Headers are included from src/
# and from the top ("kernels/..."). COLD: its time does not matter, it is built with -O1, in two thirds of the time. What is timed is in
# kernels, device, transport and measure.
function(assay_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/assay>)
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS} $<BUILD_INTERFACE:assay_options>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${assay_cold_options})
  endif()
  if(NOT name STREQUAL assay_kernels)
    if(ARG_COLD)
      set(header assay_header_cold)
    else()
      set(header assay_header)
    endif()
    target_precompile_headers(${name} REUSE_FROM ${header})
    assay_unity(${name})
  endif()
endfunction()

# assay_suite(name Class SOURCES ...): a suite whose class `Class` (namespace assay) is declared in <name>_suite.hpp of the folder
# that calls it, wherever that is.
function(assay_suite name class)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  assay_library(assay_suite_${name} COLD SOURCES ${ARG_SOURCES} LINKS assay_run ${ARG_LINKS})
  set_property(GLOBAL APPEND PROPERTY ASSAY_SUITE_NAMES ${name})
  set_property(GLOBAL APPEND PROPERTY ASSAY_SUITE_CLASSES ${class})
  set_property(GLOBAL APPEND PROPERTY ASSAY_SUITE_FOLDERS ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# assay_generate_suite_list(target): a library with make_suites() for the suites declared so far.
function(assay_generate_suite_list target)
  get_property(names GLOBAL PROPERTY ASSAY_SUITE_NAMES)
  get_property(classes GLOBAL PROPERTY ASSAY_SUITE_CLASSES)
  set(includes "")
  set(makers "")
  set(libs "")
  get_property(folders GLOBAL PROPERTY ASSAY_SUITE_FOLDERS)
  foreach(name class folder IN ZIP_LISTS names classes folders)
    string(APPEND includes "#include \"${folder}/${name}_suite.hpp\"\n")
    string(APPEND makers "  suites.push_back(std::make_unique<${class}>());\n")
    list(APPEND libs assay_suite_${name})
  endforeach()
  set(file ${PROJECT_BINARY_DIR}/generated/${target}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Generated by CMake from ASSAY_SUITES.
${includes}
namespace assay {
std::vector<std::unique_ptr<Suite>> make_suites() {
  std::vector<std::unique_ptr<Suite>> suites;
${makers}  return suites;
}
}  // namespace assay
" @ONLY)
  assay_library(${target} SOURCES ${file} LINKS assay_run ${libs})
endfunction()

# assay_generate_backend_list(target backends...): a library with device_backends() and the transports of these kinds of GPUs. Each has
# <name>_backend() in assay_device_<name>, and <name>_transports() and <name>_transport_infos() in assay_transport_<name>.
function(assay_generate_backend_list target)
  foreach(name ${ARGN})
    string(APPEND includes "#include \"device/${name}/${name}_backend.hpp\"\n#include \"transport/${name}/${name}_transports.hpp\"\n")
    string(APPEND backends "&${name}_backend(), ")
    string(APPEND transports "  if (backend == \"${name}\") return ${name}_transports();\n")
    string(APPEND infos "  for (auto& info : ${name}_transport_infos()) infos.push_back(std::move(info));\n")
    list(APPEND libs assay_device_${name} assay_transport_${name})
  endforeach()
  set(file ${PROJECT_BINARY_DIR}/generated/${target}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Generated by CMake from ASSAY_BACKENDS.
#include <utility>

${includes}
namespace assay {
const std::vector<const DeviceBackend*>& device_backends() {
  static const std::vector<const DeviceBackend*> backends{${backends}};
  return backends;
}
const GpuTransports* gpu_transports(std::string_view backend) {
${transports}  return nullptr;
}
std::vector<GpuTransportInfo> gpu_transport_infos() {
  std::vector<GpuTransportInfo> infos;
${infos}  return infos;
}
}  // namespace assay
" @ONLY)
  assay_library(${target} COLD SOURCES ${file} LINKS assay_device assay_transport ${libs})
endfunction()

# assay_generate_device_kinds(backends...): what --device takes beside auto, as generated/assay/device_kinds.hpp.
function(assay_generate_device_kinds)
  list(TRANSFORM ARGN REPLACE ".+" ", \"\\0\"" OUTPUT_VARIABLE names)
  list(JOIN names "" names)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/assay/device_kinds.hpp CONTENT
"// Generated by CMake from ASSAY_BACKENDS.
#pragma once

namespace assay {
inline constexpr const char* device_kinds[] = {\"host\"${names}};
}  // namespace assay
" @ONLY)
endfunction()

# Flags of the sources of tests: what they check is built as users get it, they themselves only have to be built soon.
# Likewise the undefined-behaviour sanitizer watches what is tested.
add_library(assay_test_options INTERFACE)
target_link_libraries(assay_test_options INTERFACE assay_options)
target_compile_options(assay_test_options INTERFACE -O0)
if(ASSAY_SANITIZE MATCHES undefined)
  target_compile_options(assay_test_options INTERFACE -fno-sanitize=undefined)
endif()

# assay_test_target(name): the flags above and one precompiled header for an executable of tests, or one that tests start.
function(assay_test_target name)
  # The header holds that of gmock, and is used only where all is defined that it was made with.
  target_link_libraries(${name} PRIVATE assay_test_options GTest::gmock)
  assay_unity(${name})
  if(NOT TARGET assay_header_test)
    assay_header(assay_header_test HEADERS <gmock/gmock.h> LINKS GTest::gmock assay_test_options)
  endif()
  target_precompile_headers(${name} REUSE_FROM assay_header_test)
endfunction()

# ctest is given seven slots for two cores (scripts/test.sh). A test that mostly waits takes one, which is the default; one that computes half a
# core's time or more takes two; one that looks at speeds three, so that on two cores two of them run at most.
set(ASSAY_CORE_SLOTS 2)
set(ASSAY_SPEED_SLOTS 3)

# assay_test(name SOURCES ... LINKS ... [LABELS ...] [TIMEOUT s] [ENVIRONMENT NAME=VALUE...] [PREFIX text] [SHARDS n] [LONG]): a GoogleTest
# executable, one ctest entry for all of its tests, or `n` entries that share them. ci/junit_count.py counts the tests, not the entries.
# LONG: its tests are too long for the sanitizers by day: ASSAY_UNIT_TEST_SET=short leaves it out, ASSAY_UNIT_TEST_SET=long the other unit tests.
function(assay_test name)
  cmake_parse_arguments(ARG "LONG" "TIMEOUT;PREFIX;SHARDS" "SOURCES;LINKS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(ASSAY_SANITIZE MATCHES "thread")
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest_main)
  assay_test_target(${name})
  if(ARG_LONG)
    set(length long)
  else()
    set(length short)
  endif()
  if("unit" IN_LIST ARG_LABELS AND NOT ASSAY_UNIT_TEST_SET MATCHES "^(all|${length})$")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  if("unit" IN_LIST ARG_LABELS OR "kernels" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY ASSAY_TEST_TARGETS ${name})
  endif()
  set(entries ${ARG_PREFIX}${name})
  if(ARG_SHARDS)
    list(TRANSFORM entries APPEND .1)
    foreach(shard RANGE 2 ${ARG_SHARDS})
      list(APPEND entries ${ARG_PREFIX}${name}.${shard})
    endforeach()
  endif()
  set(shard 0)
  foreach(entry ${entries})
    add_test(NAME ${entry} COMMAND ${name})
    set(environment ${ARG_ENVIRONMENT})
    if(ARG_SHARDS)
      list(APPEND environment GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${shard})
      math(EXPR shard "${shard} + 1")
    endif()
    set_tests_properties(${entry} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ASSAY_CORE_SLOTS} COST 5 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
