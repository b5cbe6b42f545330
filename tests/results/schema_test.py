# SPDX-License-Identifier: Apache-2.0
"""The check against the schema names every kind of change, and only changes."""

import json
import os
import unittest

import outcome
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


def set_item(path, row, value):
    def change(f):
        f[path][row] = value

    return change


def set_attribute(path, name, value):
    def change(f):
        f[path].attrs[name] = value

    return change


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

    def test_verdict_of_an_earlier_version_is_read(self):
        with h5py.File(self.file, "r+") as f:
            for column in ("confirmed_by", "uncertainty"):
                del f["/verdict/findings"][column]
        self.assertEqual(self.check(), (0, []))
        helper("show", self.file)

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
            f.attrs["schema_version"] = "3.0"
        done = helper("check", self.file, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("3.0", done.stderr)
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

    def test_telemetry_before_2_0_is_valid_and_read(self):
        now = helper("show", self.file).stdout
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "1.3"
            rows = {name: column[:] for name, column in f["telemetry/samples"].items()}
            units = {name: column.attrs["unit"] for name, column in f["telemetry/samples"].items() if "unit" in column.attrs}
            del f["telemetry/samples"]
            for entity in sorted(set(rows["entity"])):
                group = f.create_group(f"telemetry/part{entity}")
                group.attrs["entity"] = np.int32(entity)
                own = rows["entity"] == entity
                group["row"] = np.arange(own.sum(), dtype=np.int32)
                group["row"].make_scale("row")
                for name in units:
                    group[name] = rows[name][own]
                    group[name].attrs["unit"] = units[name]
                    group[name].dims[0].attach_scale(group["row"])
        self.assertEqual(self.check(), (0, []))
        before = helper("show", self.file)
        self.assertEqual(before.returncode, 0)
        self.assertEqual(before.stdout, now)

    def test_newer_minor_version_with_more_content_is_read(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "2.9"
            f["/later"] = np.zeros(3)
            f["/plan/later"] = np.zeros(len(f["/plan/row"]))
        self.assertEqual(helper("show", self.file).returncode, 0)

    def refuse(self, change, problem):
        """Named by the check, and refused by what reads the file in order to use it."""
        with h5py.File(self.file, "r+") as f:
            change(f)
        code, lines = self.check()
        self.assertEqual(code, 1)
        self.assertTrue(any(problem in line for line in lines), f"{problem!r} is not among {lines}")
        done = helper("show", self.file, check=False)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_the_check_names_what_readers_refuse(self):
        def cycle(f):
            f["/entities/parent"][1] = 2
            f["/entities/parent"][2] = 1

        def soft_cycle(f):
            del f["/plan"]
            f["/plan"] = h5py.SoftLink("/around")
            f["/around"] = h5py.SoftLink("/plan")

        def deep(f):
            del f["/config"]
            f.create_dataset("/config", data='{"a":' + "[" * 5000 + "]" * 5000 + "}", dtype=h5py.string_dtype())

        def unwritten(f):
            kept = dict(f[CASE + "/throughput"].attrs)
            shape = f[CASE + "/throughput"].shape
            del f[CASE + "/throughput"]
            data = f.create_dataset(CASE + "/throughput", shape, "f8", fillvalue=1e300)
            for name in ("unit", "better", "role", "required", "position"):
                data.attrs[name] = kept[name]
            for d, name in enumerate(("entity", "sample")):
                data.dims[d].attach_scale(f[CASE][name])

        def listed(f):
            f["/verdict/json"][()] = json.dumps(json.loads(f["/verdict/json"][()]) | {"inputs": [1]})

        for change, problem in (
            (unwritten, "throughput was never written"),
            (listed, "the inputs of the verdict are no JSON object"),
            (set_item(CASE + "/count", 0, -3), "a count is negative"),
            (set_item(CASE + "/count", 0, 1000), "a count is larger than the number of samples"),
            (cycle, "has a cycle"),
            (soft_cycle, "missing table /plan"),
            (deep, "nested too deeply"),
            (set_attribute(CASE + "/throughput", "unit", "bananas"), 'unknown unit "bananas"'),
            (set_attribute("/inventory/node/memory", "unit", "bananas"), 'unknown unit "bananas"'),
            (set_attribute(CASE, "kind", "teapot"), 'unknown kind "teapot"'),
            (set_item("/entities/kind", 1, b"teapot"), '"teapot"'),
        ):
            with self.subTest(problem):
                self.setUp()
                self.refuse(change, problem)

    def test_a_later_minor_version_may_know_more_units(self):
        with h5py.File(self.file, "r+") as f:
            f.attrs["schema_version"] = "2.9"
            f[CASE + "/throughput"].attrs["unit"] = "banana/s"
        self.assertEqual(helper("show", self.file).returncode, 0)

    def test_what_no_run_writes_is_named(self):
        def blocks(f):
            f[CASE + "/block"][0] = -7

        def backward(f):
            f[CASE + "/t"][...] = f[CASE + "/t"][...][:, ::-1]

        def ended(f):
            f.attrs["started"], f.attrs["ended"] = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"

        for change, problem in ((blocks, "-7 is no number of a block"), (backward, "decrease"), (ended, "ended before it started"),
                                (set_attribute("/", "started", "yesterday"), 'the run: "yesterday" is not a valid ISO 8601 time'),
                                (set_attribute(CASE, "ended", "never"), f'{CASE}: "never" is not a valid ISO 8601 time'),
                                (set_attribute(CASE, "wall_s", -1.0), f"{CASE}: -1.000000 s is no length of time"),
                                (set_item(CASE + "/sample", 0, -5), "-5 is no number of a sample"),
                                (set_item("/entities/name", 1, b""), "row 1 of /entities/name is empty")):
            with self.subTest(problem):
                self.setUp()
                self.expect(change, problem)
                self.assertEqual(helper("show", self.file).returncode, 0)

    def test_parts_and_samples_twice_and_times_and_samples_that_are_none_are_named(self):
        other = "/cases/gemm/op4-n4096-together"

        def change(f):
            f[CASE + "/entity"][1] = 3
            f[CASE + "/sample"][4] = 2
            f[CASE + "/t"][0, 1] = np.nan
            t = f[other + "/t"][()]
            t[2, 2] = 1e300
            del f[other + "/t"]  # both cases have one dataset
            own = f.create_dataset(other + "/t", data=t)
            own.attrs["unit"] = "s"
            for dim, name in enumerate(("entity", "sample")):
                own.dims[dim].attach_scale(f[f"{other}/{name}"])
            f["/entities/id"][...] = b"one"
            f["/entities/rank"][...] = 0
            f[other + "/throughput"][0, 1] = np.nan

        self.expect(change, f"{CASE}/entity: duplicate node01/cores0-1", f"{CASE}/sample: duplicate 2",
                    f"{CASE}/t: a time of node01/cores0-1 is not finite", f"{other}/t: a time of node02/cores0-1 is not finite or beyond",
                    '/entities/id: two parts of kind device are "one"', "are driven by rank 0",
                    f"{other}/throughput: 1 taken samples of node01/cores0-1 are no finite numbers")
        self.assertEqual(helper("show", self.file).returncode, 0)

    def test_texts_that_are_not_utf8_and_inputs_that_are_no_object_are_named(self):
        def change(f):
            f["/entities/name"][3] = b"caf\xe9"
            f["/inventory/node/kernel"][0] = b"\xff"
            f[CASE].attrs.create("reason", b"caf\xe9", dtype=h5py.string_dtype())
            f["/verdict/inputs"][()] = "[1]"

        lines = self.expect(change, "/entities/name, row 3: not UTF-8", "/inventory/node/kernel, row 0: not UTF-8",
                            f"attribute reason of {CASE}: not UTF-8", "no JSON object: /verdict/inputs")
        self.assertEqual(len(lines), 4)

    def test_a_file_of_many_wrong_things_is_told_soon(self):
        def change(f):
            for i in range(3000):
                f.create_group(f"/inventory/g{i}")

        lines = self.expect(change, "and more: the check stops here")
        self.assertEqual(len(lines), 1001)

    def test_a_loop_of_symbolic_links(self):
        os.symlink("b", self.dir / "a")
        os.symlink("a", self.dir / "b")
        done = helper("check", self.dir / "a", check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("symbolic links", done.stderr)

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
    outcome.main()
