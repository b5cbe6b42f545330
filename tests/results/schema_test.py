# SPDX-License-Identifier: Apache-2.0
"""The check against the schema names every kind of change, and only changes."""

import os
import unittest

from common import FileTest, helper, need

need("h5py", "numpy")

import h5py
import numpy as np

CASE = "/cases/gemm/op2-n4096-together"


def replace(f, path, data, **attributes):
    """Puts another dataset under the name, with the attributes of the old one but for its scales."""
    kept = {k: v for k, v in f[path].attrs.items() if k in ("unit", "better", "role", "required", "position", "dims")}
    del f[path]
    f.create_dataset(path, data=data)
    for key, value in (kept | attributes).items():
        f[path].attrs[key] = value


class Schema(FileTest):
    def setUp(self):
        super().setUp()
        helper("write", self.file, 6)

    def check(self):
        done = helper("check", self.file, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def expect(self, change, *problems):
        with h5py.File(self.file, "r+") as f:
            change(f)
        code, lines = self.check()
        self.assertEqual(code, 1)
        for problem in problems:
            self.assertTrue(any(problem in line for line in lines), f"{problem!r} is not among {lines}")
        return lines

    def test_good_file(self):
        self.assertEqual(self.check(), (0, []))

    def test_file_opened_for_writing_by_another_tool_stays_good(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["note"] = "mine"
        self.assertEqual(self.check(), (0, []))

    def test_missing_dataset(self):
        def change(f):
            del f[CASE + "/t"]
            del f["/plan/reason"]

        lines = self.expect(change, f"missing dataset {CASE}/t", "missing dataset /plan/reason")
        self.assertEqual(len(lines), 2)

    def test_metric_missing_altogether(self):
        def change(f):
            del f[CASE + "/throughput"]
            del f[CASE + "/clock"]

        self.expect(change, f"a case passed without a metric: {CASE}")

    def test_missing_table_and_text(self):
        def change(f):
            del f["/counters"]
            del f["/config"]

        self.expect(change, "missing table /counters", "missing dataset /config")

    def test_wrong_type(self):
        def change(f):
            replace(f, CASE + "/throughput", np.zeros((4, 10), "f4"))
            replace(f, CASE + "/count", np.zeros(4, "i8"))
            replace(f, "/plan/seconds", np.array([b"x"] * len(f["/plan/seconds"])))

        self.expect(change, f"wrong type of {CASE}/throughput", f"wrong type of {CASE}/count", "wrong type of /plan/seconds")

    def test_missing_and_unknown_unit(self):
        def change(f):
            del f[CASE + "/throughput"].attrs["unit"]
            f[CASE + "/clock"].attrs["unit"] = "GHz"
            del f["/plan/bytes"].attrs["unit"]
            f["/inventory/node/memory"].attrs["unit"] = "GiB"

        self.expect(change, f"missing unit of {CASE}/throughput", f'unknown unit "GHz" of {CASE}/clock',
                    "missing unit of /plan/bytes", 'unknown unit "GiB" of /inventory/node/memory')

    def test_unknown_states(self):
        def change(f):
            f[CASE].attrs["state"] = "great"
            f["/plan/state"][0] = "maybe"
            f.attrs["state"] = "resting"

        self.expect(change, f'unknown state "great" of {CASE}', 'unknown value "maybe" in /plan/state',
                    'unknown state "resting" of /')

    def test_wrong_length(self):
        def change(f):
            replace(f, CASE + "/count", np.zeros(3, "i4"))
            replace(f, "/plan/entities", np.zeros(2, "i8"))

        self.expect(change, f"wrong length of {CASE}/count", "wrong length of /plan/entities")

    def test_missing_scale(self):
        def change(f):
            data = f[CASE + "/throughput"]
            data.dims[1].detach_scale(f[CASE + "/sample"])

        self.expect(change, f"missing scale sample on dimension 1 of {CASE}/throughput")

    def test_reference_out_of_range(self):
        def change(f):
            f[CASE + "/entity"][0] = 4711
            f["/entities/parent"][1] = -2

        self.expect(change, f"row 4711 in {CASE}/entity", "row -2 in /entities/parent")

    def test_accounting(self):
        def change(f):
            f["/verdict"].attrs.modify("passed", np.int64(77))

        self.expect(change, "wrong accounting")

    def test_case_nobody_planned(self):
        self.expect(lambda f: f.move(CASE, "/cases/gemm/other"), "not in /plan: /cases/gemm/other")

    def test_repeats_and_confirmations_are_planned(self):
        with h5py.File(self.file, "r+") as f:
            f.move(CASE, CASE + ".p2.c1")
        self.assertEqual(self.check(), (0, []))

    def test_other_major_version_and_foreign_files_are_refused(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "2.0"
        done = helper("check", self.file, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("2.0", done.stderr)
        with h5py.File(self.file, "w") as f:
            f["x"] = 1
        self.assertIn("no results file", helper("check", self.file, check=False).stderr)

    def test_older_minor_version_without_what_came_later_is_valid_and_read(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "1.1"
            for column in ("sm", "warp", "lane"):
                del f["/errors"][column]
        self.assertEqual(self.check(), (0, []))
        self.assertEqual(helper("show", self.file).returncode, 0)

    def test_newer_minor_version_with_more_content_is_read(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "1.9"
            f["/later"] = np.zeros(3)
            f["/plan/later"] = np.zeros(len(f["/plan/row"]))
        self.assertEqual(helper("show", self.file).returncode, 0)

    def test_claims_of_more_than_the_file_holds(self):
        with h5py.File(self.file, "r+") as f:
            kept = dict(f[CASE + "/clock"].attrs)
            del f[CASE + "/clock"]
            data = f.create_dataset(CASE + "/clock", shape=(1 << 40,), dtype="f8")
            for name in ("unit", "better", "role", "required", "position"):
                data.attrs[name] = kept[name]
        done = helper("show", self.file, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("more data than the file holds", done.stderr)

    def test_links_out_of_the_file_are_not_followed(self):
        secret = self.dir / "secret.h5"
        os.rename(self.file, secret)
        helper("write", self.file, 6)
        with h5py.File(self.file, "r+") as f:
            del f["/plan"]
            f["/plan"] = h5py.ExternalLink(str(secret), "/plan")
        done = helper("show", self.file, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("missing group /plan", done.stderr)


if __name__ == "__main__":
    unittest.main()
