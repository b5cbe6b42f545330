# SPDX-License-Identifier: Apache-2.0
"""Spack recipe. As a repository of its own: spack repo add scripts/spack && spack dev-build -d . assay@main"""
from spack.package import *


class Assay(CMakePackage):
    """Finds the slow, wrong or missing node, GPU, NIC or link of a cluster: GEMM, memory, network and training suites over MPI, every
    sample in HDF5, and a verdict with a known false-alarm rate."""

    license("Apache-2.0")

    version("main", branch="main")

    variant("ucx", default=True, description="Measure over UCX, NIC by NIC")
    variant("cuda", default=False, description="GPUs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("blas")
    depends_on("hdf5+hl")
    depends_on("hwloc")
    depends_on("libsodium")
    depends_on("fmt")
    depends_on("cli11")
    depends_on("tomlplusplus")
    depends_on("nlohmann-json")
    depends_on("boost")
    depends_on("random123")
    depends_on("ucx", when="+ucx")
    depends_on("cuda", when="+cuda")
    depends_on("googletest+gmock", type="test")

    generator("ninja")

    conflicts("%gcc@:11", msg="C++20 as assay uses it needs GCC 12")

    def cmake_args(self):
        return [
            self.define("ASSAY_TESTS", self.run_tests),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_ucx", not self.spec.satisfies("+ucx")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit", not self.spec.satisfies("+cuda")),
        ]
