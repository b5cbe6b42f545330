# SPDX-License-Identifier: Apache-2.0
"""GPUs in inventory, counters and telemetry, without one: the library of the driver is a fake that reads a file."""

import json
import os
import pathlib
import subprocess
import threading
import time

import harness

GPUS = pathlib.Path(__file__).resolve().parents[1] / "fake_nvml" / "two_gpus.json"
FAKE = os.environ["ASSAY_FAKE_NVML"]
# Cases of a second and more, so that something can happen in them.
RUN = ["run", "--suites", "selftest", "--selftest.cases", "pass,slow", "--quiet", "--out", "r.h5"]


class Gpus(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.gpus = json.loads(GPUS.read_text())
        self.env = {"ASSAY_NVML_LIBRARY": FAKE, "ASSAY_FAKE_GPUS": str(self.dir / "gpus.json")}
        self.save()

    def gpu(self, index):
        return self.gpus["nodes"]["*"][index]

    def save(self):
        text = self.write("new.json", json.dumps(self.gpus))
        text.rename(self.dir / "gpus.json")

    def read(self, name="r.h5"):
        import h5py
        return h5py.File(self.dir / name)

    def rows(self, table, *columns):
        with self.read() as file:
            names = [n.decode() for n in file["entities/name"]]
            data = [[v.decode() if isinstance(v, bytes) else v for v in file[table][c][:]] for c in columns]
            rows = list(zip(*data))
        if columns[0] == "entity":
            rows = [(names[int(row[0])].split("/", 1)[-1], *row[1:]) for row in rows]
        return rows

    def counters(self):
        return {(entity, counter): (before, after) for entity, counter, before, after
                in self.rows("counters", "entity", "counter", "before", "after")}
