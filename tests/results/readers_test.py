# SPDX-License-Identifier: Apache-2.0
"""h5py, xarray, netCDF4 and ncdump open what assay writes, merged or recovered."""

import csv
import io
import json
import shutil
import subprocess
import unittest

import outcome
from common import HELPER, FileTest, helper, need

need("h5py", "xarray", "netCDF4", "h5netcdf")

import h5py
import netCDF4
import numpy as np
import xarray

CASE = "/cases/gemm/op2-n4096-together"
LINKS = "/cases/memory/op5-n4096-together"
SKIPPED = "/cases/gemm/op6-n4096-together"


class Readers(FileTest):
    def setUp(self):
        super().setUp()
        helper("write", self.file, 12)

    def test_h5py_reads_samples_with_units(self):
        with h5py.File(self.file) as f:
            self.assertEqual(f.attrs["format"], "assay-results")
            self.assertEqual(f.attrs["schema_version"], "2.1")
            self.assertEqual([int(f["/errors"][c][0]) for c in ("sm", "warp", "lane")], [131, 12, 31])
            self.assertEqual(int(f.attrs["seed"]), 0xFEDCBA9876543210)
            data = f[CASE + "/throughput"]
            self.assertEqual(data.attrs["unit"], "FLOP/s")
            self.assertEqual(data.attrs["better"], "higher")
            self.assertEqual(data.shape, (4, 10))
            self.assertAlmostEqual(data[1, 3], 1e11 / 3 + 1003, places=3)
            self.assertTrue(np.isnan(data[0, 9]), "the sample that was not taken")
            self.assertEqual([d.label or list(d.keys())[0] for d in data.dims], ["entity", "sample"])
            rows = f[CASE + "/entity"][:]
            names = f["/entities/name"].asstr()[:]
            self.assertEqual(names[rows[0]], "node01/cores0-1")
            parameters = f[CASE + "/parameters"].attrs
            self.assertEqual((parameters["dtype"], parameters["n"], parameters["alpha"]), ("fp32", 4096, 0.75))
            self.assertEqual(f[CASE].attrs["state"], "pass")
            self.assertEqual(json.loads(f["/config"].asstr()[()])["level"], "quick")
            self.assertEqual(f["/plan/case"].asstr()[-1], "latency-8-mpi")
            self.assertEqual(f["/inventory/node/memory"].attrs["unit"], "B")
            self.assertEqual(list(f.keys())[:2], ["cases", "config"])

    def test_scales_are_attached_from_both_sides(self):
        with h5py.File(self.file) as f:
            for group, scale, users in ((CASE, "entity", {"count": 0, "t": 0, "throughput": 0, "clock": 0, "digest": 1}),
                                        (CASE, "sample", {"block": 0, "t": 1, "throughput": 1}),
                                        ("/plan", "row", {"suite": 0, "bytes": 0})):
                scale_set = f[f"{group}/{scale}"]
                self.assertEqual(h5py.h5ds.get_scale_name(scale_set.id), scale.encode())
                listed = [(f[use[0]], int(use[1])) for use in scale_set.attrs["REFERENCE_LIST"]]
                self.assertEqual(len({(h5py.h5o.get_info(data.id).addr, dim) for data, dim in listed}), len(listed))
                for name, dim in users.items():
                    with self.subTest(user=name, scale=scale):
                        self.assertTrue(h5py.h5ds.is_attached(f[f"{group}/{name}"].id, scale_set.id, dim))
                        self.assertIn((f[f"{group}/{name}"], dim), listed)

    def test_equal_coordinates_are_one_dataset(self):
        with h5py.File(self.file) as f:
            first, second = f[CASE], f["/cases/gemm/op4-n4096-together"]
            for name in ("entity", "sample", "count", "block", "t"):
                with self.subTest(name=name):
                    equal = np.array_equal(first[name][()], second[name][()], equal_nan=first[name].dtype.kind == "f")
                    self.assertEqual(first[name] == second[name], equal)
            self.assertEqual(first["sample"], second["sample"])
            self.assertNotEqual(first["throughput"], second["throughput"])
            self.assertNotEqual(first["entity"], f[LINKS]["entity"])

    def test_xarray_sees_named_dimensions(self):
        for engine in ("h5netcdf", "netcdf4"):
            with self.subTest(engine=engine), xarray.open_dataset(self.file, engine=engine, group=CASE) as d:
                self.assertEqual(d["throughput"].dims, ("entity", "sample"))
                self.assertEqual(d["clock"].dims, ("entity",))
                self.assertEqual(d["t"].dims, ("entity", "sample"))
                self.assertEqual(d["digest"].dims, ("step", "entity", "bucket"))
                self.assertEqual(d["throughput"].attrs["unit"], "FLOP/s")
                self.assertEqual(d["entity"].values.tolist(), [3, 4, 5, 6])
                self.assertEqual(int(d["digest"].values[0, 0, 1]), 0xFFFFFFFFFFFFFFFE)
                self.assertGreater(float(d["throughput"].sel(entity=5).mean("sample")), 3e10)

    def test_xarray_opens_tables_links_and_skipped_cases(self):
        for engine in ("h5netcdf", "netcdf4"):
            groups = ["/plan", "/entities", "/errors", "/counters", "/events", "/selftest", "/environment",
                      "/inventory/node", "/inventory/dimm", "/verdict/findings", "/verdict/entities", LINKS, SKIPPED]
            for group in groups:
                with self.subTest(engine=engine, group=group):
                    with xarray.open_dataset(self.file, engine=engine, group=group) as d:
                        d.load()
                        self.assertTrue({"row", "entity"} & set(d.sizes), d.sizes)

    def test_netcdf4_opens_every_group(self):
        def visit(group):
            for variable in group.variables.values():
                variable[...]
            for child in group.groups.values():
                visit(child)

        with netCDF4.Dataset(self.file) as d:
            visit(d)
            self.assertEqual(d[CASE].variables["throughput"].dimensions, ("entity", "sample"))

    @unittest.skipUnless(shutil.which("ncdump"), "ncdump is not installed")
    def test_ncdump(self):
        text = subprocess.run(["ncdump", "-h", self.file], check=True, capture_output=True, text=True).stdout
        self.assertIn("double throughput(entity, sample)", text)
        subprocess.run(["ncdump", self.file], check=True, capture_output=True)

    def test_csv_has_every_sample_of_the_file(self):
        rows = list(csv.DictReader(io.StringIO(helper("csv", self.file).stdout, newline="")))
        lines = [json.loads(line) for line in helper("jsonl", self.file).stdout.splitlines()]
        samples = [line for line in lines if line["record"] == "sample"]
        count, total = 0, 0.0
        with h5py.File(self.file) as f:
            for suite in f["/cases"].values():
                for case in suite.values():
                    for name, data in case.items():
                        if not isinstance(data, h5py.Dataset) or "better" not in data.attrs:
                            continue
                        values = data[:]
                        if values.ndim == 2:
                            values = np.concatenate([v[:n] for v, n in zip(values, case["count"])] or [values[0:0]])
                        count += values.size
                        total += np.nansum(values)
        self.assertEqual(len(rows), count)
        self.assertEqual(len(samples), count)
        self.assertAlmostEqual(sum(float(r["value"]) for r in rows if r["value"] != "nan") / total, 1, places=12)
        self.assertAlmostEqual(sum(s["value"] for s in samples if s["value"] is not None) / total, 1, places=12)
        self.assertEqual(sum(line["record"] == "case" for line in lines), 12)


class RecoveredReaders(Readers):
    """The same from a file that was made of what a killed writer left."""

    def setUp(self):
        FileTest.setUp(self)
        writing = [HELPER, "write-until-killed", self.file]
        with subprocess.Popen(writing, stdout=subprocess.PIPE, text=True) as writer:
            for number, _ in enumerate(writer.stdout, 1):
                if number == 12:
                    break
            writer.kill()
            writer.communicate()
        # what was stored after the twelfth until the kill came is of no interest here
        for path in sorted((self.partial / "cases").iterdir())[12:]:
            path.unlink()
        helper("recover", self.partial, self.file)

    def test_h5py_reads_samples_with_units(self):
        with h5py.File(self.file) as f:
            self.assertEqual(f.attrs["state"], "aborted")
            self.assertEqual(f[CASE + "/throughput"].attrs["unit"], "FLOP/s")
            self.assertNotIn("verdict", f)
            self.assertEqual(len(f["/plan/case"]), 1001)

    def test_xarray_opens_tables_links_and_skipped_cases(self):
        for engine in ("h5netcdf", "netcdf4"):
            for group in ("/plan", "/entities", "/counters", "/events", LINKS, SKIPPED):
                with self.subTest(engine=engine, group=group):
                    with xarray.open_dataset(self.file, engine=engine, group=group) as d:
                        d.load()


if __name__ == "__main__":
    outcome.main()
