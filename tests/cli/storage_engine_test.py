#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite that reads and writes files where a container forbids io_uring: threads take its place, and the file says so."""

import errno
import pathlib
import sys

import harness
import outcome
from storage_runs import FAIL, INCONCLUSIVE, PASS, StorageTest, h5py

WITHOUT = [sys.executable, "-B", str(pathlib.Path(__file__).with_name("without_io_uring.py"))]
probe = harness.execute([*WITHOUT, "1", "true"], "/")
if probe.returncode != 0:
    outcome.skip_file(probe.stderr.strip())

OFTEN = (errno.EPERM, "Operation not permitted")  # what Docker and /proc/sys/kernel/io_uring_disabled answer


class WithoutIoUring(StorageTest):
    def run_without(self, *args, error=errno.EPERM, ranks=2, shared=False, **settings):
        arguments = list(map(str, self.arguments(*args, **settings)))
        if shared:
            arguments[arguments.index(str(self.data))] = f"shared:{self.data}"
        return harness.execute([*WITHOUT, str(error), harness.MPIEXEC, "-n", str(ranks), harness.ASSAY, *arguments], self.dir)

    def test_servers_tell_where_direct_transfers_are_refused(self):
        folders = [self.data / name for name in "ab"]
        for folder in folders:
            folder.mkdir()
        arguments = list(map(str, self.arguments("--cases", "storage/servers-*", "--storage.servers", "paths", level="quick")))
        arguments[arguments.index(str(self.data))] = ",".join(f"shared:{folder}" for folder in folders)
        for program, refused in (([*WITHOUT, "direct"], True), ([], False)):
            result = harness.execute([*program, harness.MPIEXEC, "-n", "2", harness.ASSAY, *arguments], self.dir)
            self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
            told = self.events("storage-buffered")
            if refused:
                self.assertEqual(told, [f"{folders[0]} ({folders[0]}): O_DIRECT is refused (open: Invalid argument): files go through the page cache"])
            elif self.case("servers-0")[0]["direct"] == 1:
                self.assertEqual(told, [])

    def assert_verified(self, name, reason):
        parameters, values = self.case(name)
        self.assertEqual((parameters["engine"], parameters["engine_why"]), ("threads", f"io_uring: {reason}"), name)
        self.assertEqual(values["errors"][0], 0, name)
        self.assertGreater(values["verified"][0], 0, name)

    def test_threads_move_and_verify_the_data_of_every_case(self):
        result = self.run_without("--cases", "storage/[!mh]*", level="quick", space="256MiB")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        with h5py.File(self.dir / "r.h5") as file:
            ran = {name for name, case in file["cases/storage"].items() if "errors" in case}
        self.assertLessEqual({"local-write-0", "local-read-0", "checkpoint-0"}, ran)
        for name in sorted(ran):
            self.assert_verified(name, OFTEN[1])
        self.assertRegex(self.events("storage-place")[0], r"; engine threads \(io_uring: Operation not permitted\)$")
        self.assertEqual(list(self.data.iterdir()), [])

    def test_a_shared_directory_and_a_kernel_without_it(self):
        result = self.run_without("--cases", "storage/shared-*", error=errno.ENOSYS, shared=True)
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        for kind in ("easy", "hard"):
            for direction in ("write", "read"):
                self.assert_verified(f"shared-{kind}-{direction}-0", "Function not implemented")

    def test_damage_is_found_by_threads(self):
        for target, case, kind in (("disk-stale", "local-read-0", "stale"), ("disk-torn", "local-random-read-q16-0", "torn")):
            result = self.run_without("--cases", f"storage/{case}", "--inject", f"bitflip:target={target},rank=0,step=0", level="quick")
            self.assert_code(result, FAIL)
            parameters, values = self.case(case)
            self.assertEqual(parameters["engine"], "threads")
            self.assertGreater(values[kind][0], 0)
            self.assertEqual(values["errors"][0], values[kind][0], "and nothing else is wrong")

    def test_io_uring_by_name_is_not_replaced(self):
        result = self.run_without("--cases", "storage/local-read-0", "--storage.engine", "io_uring")
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("--storage.engine io_uring: io_uring: Operation not permitted", " ".join(result.stdout.split()))
        self.assertEqual(list(self.data.iterdir()), [])


if __name__ == "__main__":
    outcome.main()
