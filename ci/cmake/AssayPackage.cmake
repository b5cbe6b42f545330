# SPDX-License-Identifier: Apache-2.0
# `cpack -G TGZ` (a prefix to unpack anywhere, without root) and `cpack -G DEB`.
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the assay maintainers <assay@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tells whether a cluster, and every node, GPU, NIC and link in it, is good")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES OFF)  # the stack of a stuck rank is told by function names
set(CPACK_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "man-db, bash-completion")
# Libraries are found by what the program links; without dpkg-dev the package names none.
find_program(ASSAY_SHLIBDEPS dpkg-shlibdeps)
if(ASSAY_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
