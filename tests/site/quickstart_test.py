# SPDX-License-Identifier: Apache-2.0
"""scripts/quickstart.sh with a build and a run that are made up: whose verdict it tells."""

import place

ASSAY = "#!/bin/sh\necho '  verdict: PASS'\n"


class Quickstart(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.build = self.dir / "build"
        self.build.mkdir()
        (self.build / "assay").write_text(ASSAY)
        (self.build / "assay").chmod(0o755)
        self.program("cmake", f"#!/bin/sh\necho \"$@\" >>{self.dir}/built\n")

    def quickstart(self, code):
        """A run that leaves with `code`."""
        self.program("mpirun", f"#!/bin/sh\ntouch {self.dir}/q.h5\nexit {code}\n")
        result = self.script("quickstart.sh", "--no-install", "--out", "q.h5", env={"ASSAY_BUILD_DIR": str(self.build)})
        self.assert_code(result, code)
        return result

    def test_the_verdict_is_told(self):
        self.assertTrue(self.quickstart(0).stdout.endswith(f"Results: {self.dir}/q.h5\nVerdict: PASS (exit code 0)\n"))

    def test_by_hand_the_build_needs_no_more_packages(self):
        steps = self.script("quickstart.sh", "--no-install", "--print", env={"ASSAY_BUILD_DIR": str(self.dir / "new")}).stdout
        options = [word for word in steps.split() if word.startswith("-DASSAY_")]
        self.assertTrue(options, steps)
        self.assertIn(f"\ncmake --preset release {' '.join(options)} && cmake --build --preset release\n", (place.ROOT / "README.md").read_text())

    def test_an_earlier_file_is_refused_before_anything_is_built(self):
        (self.dir / "q.h5").touch()
        result = self.quickstart(4)
        self.assertEqual((result.stdout, result.stderr), ("", f"quickstart.sh: --out: {self.dir}/q.h5 exists already\n"))
        self.assertFalse((self.dir / "built").exists())

    def test_a_run_that_is_none_has_no_verdict(self):
        for code in (4, 5):
            (self.dir / "q.h5").unlink(missing_ok=True)
            result = self.quickstart(code)
            self.assertNotIn("Verdict", result.stdout)
            self.assertEqual(result.stderr, f"No verdict: the run left with exit code {code}\n")


if __name__ == "__main__":
    place.main()
