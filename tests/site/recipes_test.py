# SPDX-License-Identifier: Apache-2.0
"""The Apptainer definition and the Spack recipe, as far as they can be checked without Apptainer and Spack."""

import re
import shutil
import subprocess
import sys
import types

import place

DEPENDENCIES = (place.ROOT / "ci" / "cmake" / "AssayDependencies.cmake").read_text()
# How Spack calls what CMake asks for: packages of CMake and modules of pkg-config.
SPACK = {"MPI": "mpi", "fmt": "fmt", "CLI11": "cli11", "tomlplusplus": "tomlplusplus", "nlohmann_json": "nlohmann-json", "Boost": "boost",
         "HDF5": "hdf5", "PkgConfig": "pkgconfig", "BLAS": "blas", "GTest": "googletest", "ucx": "ucx", "CUDAToolkit": "cuda", "Threads": None,
         "hwloc": "hwloc", "libsodium": "libsodium"}
# Modules that a build is complete without, and that Spack builds without.
OPTIONAL = {"libseccomp"}


class Recipes(place.SiteTest):
    def test_the_definition_of_the_image(self):
        text = (place.SCRIPTS / "container" / "assay.def").read_text()
        sections = re.split(r"^%(\w+)[^\n]*$", text, flags=re.M)
        posts = [body for name, body in zip(sections[1::2], sections[2::2]) if name == "post"]
        self.assertEqual(len(posts), 2, "one that builds, one that runs")
        for number, body in enumerate(posts):
            script = self.dir / f"post{number}.sh"
            script.write_text("#!/bin/sh\n" + body.split("Bootstrap:")[0])
            self.assertEqual(subprocess.run(["sh", "-n", script], capture_output=True).returncode, 0)
            if shutil.which("shellcheck"):
                result = subprocess.run(["shellcheck", script], capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stdout)
        for file in re.findall(r"scripts/\w+\.sh", text):
            self.assertTrue((place.ROOT / file).exists(), file)
        self.assertIn("cpack -G DEB", posts[0])

    def test_the_spack_recipe_depends_on_what_cmake_asks_for(self):
        modules = re.findall(r"pkg_check_modules\(\w+ (?:(?:REQUIRED|QUIET|IMPORTED_TARGET) )*([\w-]+)\)", DEPENDENCIES)
        self.assertEqual(len(modules), DEPENDENCIES.count("pkg_check_modules("), "a call that this test does not read")
        wanted = (set(re.findall(r"find_package\((\w+)", DEPENDENCIES)) | set(modules)) - OPTIONAL
        self.assertLessEqual(wanted, set(SPACK), "a dependency that the recipe may not know")
        asked = []
        module = types.ModuleType("spack.package")
        for name in ("license", "version", "variant", "generator", "conflicts"):
            setattr(module, name, lambda *_, **__: None)
        module.depends_on = lambda spec, **_: asked.append(re.split("[@+]", spec)[0])
        module.CMakePackage = object
        sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
        recipe = {}
        exec((place.SCRIPTS / "spack" / "packages" / "assay" / "package.py").read_text(), recipe)
        self.assertLessEqual({SPACK[name] for name in wanted} - {None}, set(asked))
        self.assertIn("random123", asked)
        package = recipe["Assay"]()
        package.define, package.run_tests = (lambda name, value: f"-D{name}={value}"), False
        package.spec = types.SimpleNamespace(satisfies=lambda variant: variant == "+ucx")
        options = package.cmake_args()
        self.assertIn("-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=True", options)
        self.assertIn("-DCMAKE_DISABLE_FIND_PACKAGE_ucx=False", options)


if __name__ == "__main__":
    place.main()
