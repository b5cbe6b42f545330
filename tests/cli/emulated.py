# SPDX-License-Identifier: Apache-2.0
"""Runs of the program on emulated GPUs: it is linked with a CUDA that runs kernels on the host (tests/emulation)."""

import json

import fake_gpus
import harness


class EmulatedTest(harness.CliTest):
    def setUp(self):
        super().setUp()
        two = self.write("gpus.json", json.dumps(fake_gpus.small()))
        self.env = {"ASSAY_FAKE_GPUS": str(two), "ASSAY_NVML_LIBRARY": "/nonexistent"}

    def run_on(self, ranks, *args, env=None):
        return self.mpirun(ranks, *args, env={**self.env, **(env or {})})

    def open(self):
        import h5py
        return h5py.File(self.dir / "r.h5")

    def out_of_time(self, *others):
        """For which cases, or turns of a rank with a fault, the level's time did not suffice. `others`: further words of such a reason."""
        with self.open() as file:
            late = [name for suite in file["cases"].values() for name, case in suite.items()
                    if any(word in str(case.attrs.get("reason")) for word in ("budget", *others))]
            return late + [text for kind, text in zip(file["events/kind"].asstr()[:], file["events/text"].asstr()[:]) if kind == "inject-unfired"]

    def run_in_time(self, ranks, *args, env=None, whole=False):
        """At level smoke; where a busy machine has no time for all cases (`whole`: cuts some short), at quick, which ends within 160 s."""
        for level in ("smoke", "quick"):
            command = [harness.MPIEXEC, "-n", ranks, harness.ASSAY, "run", "--device", "cuda", "--level", level, "--force", "--out", "r.h5", *args]
            result = harness.execute([str(word) for word in command], self.dir, {**self.env, **(env or {})}, timeout=240)
            if not self.out_of_time(*["cut short"] * whole):
                break
        self.need_time()
        return result

    def need_time(self):
        if late := self.out_of_time():
            self.skipTest(f"noise: no time was left for {late[0]}")

    def device_names(self, file):
        return [name.decode() for name, kind in zip(file["entities/name"][:], file["entities/kind"][:]) if kind == b"device"]

    def miscompares(self, file):
        names = [n.decode() for n in file["entities/name"][:]]
        return [(case.decode(), names[entity].split("/")[-1], int(index), int(xor)) for case, entity, index, xor in zip(
            *(file["errors"][c][:] for c in ("case", "entity", "index", "xor")))]
