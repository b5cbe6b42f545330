#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of the suite that reads and writes files, in the directory `self.data`, and what their files say."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import outcome

try:
    import h5py
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")

import harness

PASS, FAIL, INCONCLUSIVE, USAGE = 0, 2, 3, 4


class StorageTest(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.data.mkdir()

    def arguments(self, *args, space="64MiB", level="smoke", out="r.h5", seed=7):
        return ["run", "--level", level, "--suites", "inventory,storage", "--storage.paths", self.data, "--storage.space", space,
                "--seed", str(seed), "--quiet", "--out", out, "--json", "v.json", "--force", *args]

    def shared(self, *args, **settings):
        arguments = self.arguments(*args, **settings)
        arguments[arguments.index(self.data)] = f"shared:{self.data}"
        return self.mpirun(2, *arguments)

    def measure(self, *args, **settings):
        return self.mpirun(2, *self.arguments(*args, **settings))

    def findings(self):
        return json.loads((self.dir / "v.json").read_text())["findings"]

    def case(self, name):
        with h5py.File(self.dir / "r.h5") as file:
            group = file["cases/storage/" + name]
            if group.attrs["state"] in ("incomplete", "skip"):
                self.skipTest(f"noise: {name} is {group.attrs['state']} in the time there was")
            values = {key: item[:].ravel() for key, item in group.items() if isinstance(item, h5py.Dataset) and item.dtype.kind == "f"}
            return dict(group["parameters"].attrs), values

    def events(self, kind):
        with h5py.File(self.dir / "r.h5") as file:
            kinds, texts = file["events/kind"].asstr()[:], file["events/text"].asstr()[:]
            return [text for k, text in zip(kinds, texts) if k == kind]

    def processes(self):
        """Those that measure in the directory of this test."""
        out = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if {str(self.data).encode(), f"shared:{self.data}".encode()} & set(words):
                out.append(int(entry.name))
        return out

    def workers(self):
        """Those of them that supervisors started: the ranks of MPI."""
        assay = {pid for pid in self.processes() if pathlib.Path(f"/proc/{pid}/exe").resolve().name == "assay"}
        return [pid for pid in assay if int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) in assay]

    def tree(self):
        """All that is in the directory, without following links."""
        return {pathlib.Path(at) / name for at, folders, files in os.walk(self.data) for name in folders + files}

    def files(self):
        return {path for path in self.tree() if path.is_file()}

    @contextlib.contextmanager
    def begun(self, *args, shared=False, at_files=False, **settings):
        """A run that goes on; with `at_files` it has made a file that has a name."""
        command = [harness.MPIEXEC, "-n", "2", harness.ASSAY, *map(str, self.arguments(*args, **settings))]
        if shared:
            command[command.index(str(self.data))] = f"shared:{self.data}"
        before = self.files()
        with open(self.dir / "said.txt", "wb") as said, subprocess.Popen(
                command, cwd=self.dir, env={**os.environ, **harness.LAUNCH}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=said) as process:
            while at_files and self.files() <= before and process.poll() is None:
                time.sleep(0.005)
            yield process

    def interrupt(self, number, after_s, *args, **settings):
        """Sends a run a signal: TERM to the launcher, KILL to all processes at once."""
        with self.begun(*args, level="quick", **settings) as process:
            self.stop(process, number, after_s)
        self.assertEqual(self.processes(), [])

    def stop(self, process, number, after_s):
        time.sleep(after_s)
        self.assertIsNone(process.poll(), "the run ended before the signal: " + (self.dir / "said.txt").read_text())
        end = time.monotonic() + 20
        pids = [process.pid] if number == signal.SIGTERM else self.processes()
        while pids and time.monotonic() < end:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            pids = self.processes() if number == signal.SIGKILL else []  # those that were just being started
        process.wait(60)
        self.wait_for_end()

    def wait_for_end(self):
        """Processes that clean up may go on after those that started them."""
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
