# SPDX-License-Identifier: Apache-2.0
# Everything assay links, found once. Required packages are Debian 12 names in scripts/packages.sh.
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C HL)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(SODIUM REQUIRED libsodium)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)

# BLAS: OpenBLAS unless BLA_VENDOR says otherwise (MKL, AOCL, FLAME ...). The flavour is linked by its full path with an
# RPATH, because several flavours of OpenBLAS share one soname and the system's alternative need not be the one linked.
if(NOT BLA_VENDOR)
  set(BLA_VENDOR OpenBLAS)
  find_library(ASSAY_OPENBLAS_LIBRARY NAMES openblas
    HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
  if(ASSAY_OPENBLAS_LIBRARY)
    set(BLAS_LIBRARIES ${ASSAY_OPENBLAS_LIBRARY})
  endif()
endif()
if(NOT BLAS_LIBRARIES)
  find_package(BLAS REQUIRED)
endif()
find_path(CBLAS_INCLUDE_DIR cblas.h
  HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
add_library(assay_blas INTERFACE)
target_link_libraries(assay_blas INTERFACE ${BLAS_LIBRARIES})
target_include_directories(assay_blas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
list(GET BLAS_LIBRARIES 0 ASSAY_BLAS_FILE)
get_filename_component(ASSAY_BLAS_DIR ${ASSAY_BLAS_FILE} DIRECTORY)
set(CMAKE_INSTALL_RPATH ${ASSAY_BLAS_DIR})
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Imported, so that the installed package refers to it by name and finds it anew (assayConfig.cmake).
add_library(assay::hdf5 INTERFACE IMPORTED GLOBAL)
target_link_libraries(assay::hdf5 INTERFACE ${HDF5_HL_LIBRARIES} ${HDF5_C_LIBRARIES})
target_include_directories(assay::hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_compile_definitions(assay::hdf5 INTERFACE H5_USE_110_API)  # the functions of 1.10 by their names, in later versions too
add_library(assay_hdf5 ALIAS assay::hdf5)

# Optional: named in `assay list` when found.
pkg_check_modules(SECCOMP QUIET libseccomp)
# By pkg-config: the CMake package of UCX 1.18 in Debian 13 names an include directory that is not there.
pkg_check_modules(ucx QUIET IMPORTED_TARGET ucx)
if(ucx_FOUND)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES PkgConfig::ucx)
  check_cxx_source_compiles("#include <ucp/api/ucp.h>
int main() { ucp_ep_attr_t a; a.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS; return a.transports.num_entries; }" ASSAY_UCX_TELLS_TRANSPORTS)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()

# The CUDA Toolkit. Of its libraries only the static runtime is linked: cuBLASLt and NCCL are opened where a GPU is used, so the
# same program starts on nodes that have neither them nor a driver.
set(ASSAY_CUDA AUTO CACHE STRING "Build for NVIDIA GPUs: AUTO (where the CUDA Toolkit is found), ON or OFF")
set(ASSAY_CUDA_ARCHITECTURES "" CACHE STRING "GPU architectures to build for, as CMAKE_CUDA_ARCHITECTURES; empty: of compute capability 8.0, 9.0 and 10.0 those that nvcc knows")
# Code for those wanted that the compiler knows, and of the newest the form that later GPUs compile for themselves.
function(assay_choose_architectures)
  foreach(wanted 80 90a 100)
    execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --dryrun -c -gencode arch=compute_${wanted},code=sm_${wanted} asked.cu
      RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
    if(unknown EQUAL 0)
      list(APPEND known ${wanted}-real)
      string(REGEX MATCH "^[0-9]+" newest ${wanted})
    endif()
  endforeach()
  if(NOT known)
    message(FATAL_ERROR "${CUDAToolkit_NVCC_EXECUTABLE} compiles for none of compute capability 8.0, 9.0 and 10.0: choose by ASSAY_CUDA_ARCHITECTURES")
  endif()
  set(ASSAY_CUDA_ARCHITECTURES "${known};${newest}-virtual" PARENT_SCOPE)
endfunction()

set(ASSAY_HAS_CUDA OFF)
if(NOT ASSAY_CUDA STREQUAL OFF)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12 AND CUDAToolkit_NVCC_EXECUTABLE AND EXISTS ${CUDAToolkit_INCLUDE_DIRS}/cublasLt.h)
    set(ASSAY_HAS_CUDA ON)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "CUDA compiler")
    if(NOT ASSAY_CUDA_ARCHITECTURES)
      assay_choose_architectures()
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${ASSAY_CUDA_ARCHITECTURES})
    # Those that ptxas compiles here, by name: "80 90a 100".
    list(FILTER ASSAY_CUDA_ARCHITECTURES EXCLUDE REGEX "-virtual$")
    list(TRANSFORM ASSAY_CUDA_ARCHITECTURES REPLACE "-real$" "")
    list(JOIN ASSAY_CUDA_ARCHITECTURES " " ASSAY_CUDA_COMPILED)
    set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # named where it is linked
    enable_language(CUDA)
    # Programs are linked by the C++ compiler. nvcc may have an older one beside it, of which the runtime libraries are not wanted.
    set(CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
    set(CMAKE_CUDA_IMPLICIT_LINK_LIBRARIES ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
    # CMake 3.25 has not heard that this compiler knows C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
  elseif(ASSAY_CUDA STREQUAL ON)
    message(FATAL_ERROR "ASSAY_CUDA=ON: no CUDA Toolkit 12 or later with nvcc and cuBLASLt")
  endif()
endif()

# NCCL's header is a package of its own; the library is opened where it is used.
set(ASSAY_NCCL_VERSION "")
find_path(ASSAY_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(ASSAY_NCCL_INCLUDE_DIR)
  file(STRINGS ${ASSAY_NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" ASSAY_NCCL_VERSION "${nccl_lines}")
endif()

if(ASSAY_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
message(STATUS "BLAS: ${BLAS_LIBRARIES}; MPI: ${MPI_C_LIBRARY_VERSION_STRING}; HDF5 ${HDF5_VERSION}; "
  "UCX: ${ucx_FOUND}; libseccomp: ${SECCOMP_VERSION}; CUDA: ${CUDAToolkit_VERSION} ${CMAKE_CUDA_ARCHITECTURES}")
