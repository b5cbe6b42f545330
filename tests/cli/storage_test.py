#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite that reads and writes files, on two ranks in a directory of the test."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import harness
import outcome
from storage_runs import FAIL, INCONCLUSIVE, PASS, USAGE, StorageTest, h5py

KINDS = ("flipped", "stale", "torn", "misdirected", "short", "foreign")


def enough_space(path):
    total, _, free = shutil.disk_usage(path)
    return free > max(total / 10, 5 << 30) + (1 << 30)


if not enough_space(tempfile.gettempdir()):
    outcome.skip_file(f"no privilege: {tempfile.gettempdir()} has less than a tenth or 5 GiB left, which the suite leaves alone")


class Storage(StorageTest):
    def test_a_shared_directory(self):
        result = self.shared()
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
        self.assertEqual(list(self.data.iterdir()), [])
        for kind, block in (("easy", 1 << 20), ("hard", 47008)):
            for direction in ("write", "read"):
                parameters, values = self.case(f"shared-{kind}-{direction}-0")
                self.assertEqual(int(parameters["block_bytes"]), block)
                self.assertEqual(values["errors"][0], 0)
                self.assertGreater(values["verified"][0], 0)
                self.assertGreater(values["bandwidth_all"][0], 0)
        for case, name, words in (("shared-easy-read-0", "data-000000", 131072), ("shared-hard-read-0", "data-000000", 5876)):
            result = self.shared("--inject", "bitflip:target=disk-stale,rank=1,step=0", "--cases", "storage/" + case)
            self.assert_code(result, FAIL)
            self.assertEqual(self.case(case)[1]["stale"][0], words)
            self.assertIn(name, self.events("storage-damage")[0], "rank 1 reads what rank 0 has written")
            self.assertEqual(list(self.data.iterdir()), [])

    def test_writes_and_reads_are_measured_and_nothing_stays(self):
        result = self.measure()
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
        self.assertEqual(list(self.data.iterdir()), [])
        for name in ("local-write-0", "local-read-0"):
            attributes, values = self.case(name)
            self.assertEqual(attributes["path"], str(self.data))
            self.assertIn(attributes["engine"], ("io_uring", "threads"))
            self.assertLessEqual(2 * int(attributes["file_bytes"]), 64 << 20)
            self.assertEqual(values["errors"][0], 0)
            self.assertGreater(values["verified"][0], 0)
            moved = values["moved_share"][0]
            rates = values["bandwidth" if moved >= 0.95 else "bandwidth_cached"]
            self.assertGreater(rates[0], 0)
            other = values["bandwidth_cached" if moved >= 0.95 else "bandwidth"]
            self.assertTrue((other != other).all(), "one name or the other")
        total, free = (self.case("place-before-0")[1][name][0] for name in ("total", "free"))
        self.assertEqual(total, shutil.disk_usage(self.data).total)
        self.assertTrue(0 < free < total)
        point = subprocess.run(["stat", "-c", "%m", self.data], check=True, capture_output=True, text=True).stdout.strip()
        self.assertIn(f" on {point} (", self.events("storage-place")[0])
        with h5py.File(self.dir / "r.h5") as file:
            self.assertIn("storage", file["selftest/checker"].asstr()[:])

    def test_without_a_path_it_is_not_applicable(self):
        result = self.assay("plan", "--suites", "storage")
        self.assertRegex(result.stdout, r"not applicable: .*--storage\.paths")
        for path, said in (("here", "not an absolute path"), (f"{self.data},{self.data}/", "named twice")):
            result = self.assay("plan", "--suites", "storage", "--storage.paths", path)
            self.assert_code(result, USAGE)
            self.assertIn(said, result.stderr)

    def test_what_servers_may_have_cached_is_called_so(self):
        """Unseen by the client: files smaller than twice the memory that --storage.cache names."""
        runs = ((80, "smoke", True), (1, "smoke", False), (80, "extended", False))
        for cache, level, cached in runs if outcome.NIGHTLY else runs[:2]:
            with self.subTest(cache=cache, level=level):
                result = self.shared("--storage.cache", f"{cache}MiB", "--cases", "storage/shared-easy-read-0",
                                     level=level, space="400MiB")
                self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
                parameters, values = self.case("shared-easy-read-0")
                self.assertEqual(int(parameters["server_cache_twice"]), 2 * cache << 20)
                self.assertEqual((values["bandwidth"] != values["bandwidth"]).all(), cached or values["moved_share"][0] < 0.95)
                self.assertEqual(any("--storage.cache" in text for text in self.events("storage-cached")), cached)

    def test_no_case_judges_what_servers_may_have_cached(self):
        arguments = self.arguments("--storage.cache", "1GiB", "--storage.servers", "paths", "--cases", "storage/[cfms]*-0", level="quick")
        paths = [self.data / "a", self.data / "b"]
        for path in paths:
            path.mkdir()
        arguments[arguments.index(self.data)] = ",".join(f"shared:{path}" for path in paths)
        result = self.mpirun(2, *arguments)
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        told = [text for text in self.events("storage-cached") if "--storage.cache" in text]
        for case, rates in (("checkpoint-0", ("write", "restore")), ("feed-0", ("records",)), ("mpiio-collective-0", ("write", "read")),
                            ("mpiio-independent-0", ("write", "read")), ("servers-0", ("write", "read")), ("shared-hard-read-0", ("bandwidth",))):
            with self.subTest(case=case):
                _, values = self.case(case)
                for name in rates:
                    self.assertTrue((values[name] != values[name]).all())
                    self.assertGreater(values[name + "_cached"][0], 0)
                self.assertTrue(any(f"storage/{case} " in text for text in told), told)

    def test_random_writes_that_nothing_waits_for_are_those_of_a_cache(self):
        result = self.measure("--storage.page-cache", "through", "--cases", "storage/local-random-write-q16-0", level="quick")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        _, values = self.case("local-random-write-q16-0")
        self.assertTrue((values["rate"] != values["rate"]).all())
        self.assertGreater(values["rate_cached"][0], 0)
        self.assertTrue((values["moved_share"] != values["moved_share"]).all(), "nothing tells what met the storage")
        self.assertEqual(len(self.events("storage-cached")), 1)

    def test_a_page_cache_is_called_one(self):
        result = self.measure("--storage.page-cache", "through", "--cases", "storage/local-read-0")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        _, values = self.case("local-read-0")
        self.assertLess(values["moved_share"][0], 0.95)
        self.assertGreater(values["resident_share"][0], 0.9)
        self.assertGreater(values["bandwidth_cached"][0], 0)
        self.assertTrue((values["bandwidth"] != values["bandwidth"]).all())
        self.assertTrue(any("a rate of caches" in text or "of caches" in text for text in self.events("storage-cached")))

    def test_what_a_warm_up_overwrites_was_synced_before(self):
        """Pages that are written twice before a sync reach the disk once: 80 to 100 % of the bytes were seen to."""
        self.measure("--storage.page-cache", "through", "--cases", "storage/local-write-0")
        moved = self.case("local-write-0")[1]["moved_share"][0]
        if moved < 0.1:
            self.skipTest("no privilege: no storage behind the directory of the test")
        self.assertGreater(moved, 0.999)

    def test_each_damage_is_told_apart(self):
        block = 131072  # words of 1 MiB
        wanted = {"disk": ("flipped", 1), "disk-stale": ("stale", block), "disk-torn": ("torn", block // 2),
                  "disk-misdirect": ("misdirected", block), "disk-short": ("short", block // 2)}
        for target, (kind, words) in harness.share(list(wanted.items()), 3):
            for case in ("local-read-0",) if target != "disk" else ("local-read-0", "local-write-0"):
                with self.subTest(target=target, case=case):
                    result = self.measure("--inject", f"bitflip:target={target},rank=1,step=0", "--cases", "storage/" + case)
                    self.assert_code(result, FAIL)
                    _, values = self.case(case)
                    self.assertEqual({k: values[k][0] for k in KINDS if values[k][0]}, {kind: words})
                    self.assertEqual(values["errors"][0], words)
                    corrupt = [f for f in self.findings() if f["kind"] == "corrupt"]
                    self.assertEqual([(f["suite"], f["level"]) for f in corrupt], [("storage", "node")], corrupt)
                    told = self.events("storage-damage")
                    self.assertEqual(len(told), 1, told)
                    self.assertRegex(told[0], rf"data-000001: {words} words {kind}\b.* \d+")
                    self.assertEqual(list(self.data.iterdir()), [])

    def test_what_the_device_refuses_is_its_fault_and_a_full_one_is_not(self):
        result = self.measure("--inject", "bitflip:target=disk-eio,rank=1,step=0", "--cases", "storage/local-read-0")
        self.assert_code(result, FAIL)
        failed = [f["text"] for f in self.findings() if f["severity"] == "FAIL"]
        self.assertEqual(len(failed), 1, failed)
        self.assertRegex(failed[0], r"data-000001: read at offset \d+: Input/output error")
        for target, reason in (("disk-enospc", "No space left on device"), ("disk-edquot", "Disk quota exceeded")):
            result = self.measure("--inject", f"bitflip:target={target},rank=0,step=0", "--cases", "storage/local-write-0")
            self.assert_code(result, INCONCLUSIVE)
            findings = [f for f in self.findings() if f["severity"] in ("WARN", "FAIL")]
            self.assertEqual({f["severity"] for f in findings}, {"WARN"}, findings)
            self.assertRegex("".join(f["text"] for f in findings), rf"{self.data}/\S*data-000000: write at offset \d+: {reason}")
            self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
            self.assertEqual(list(self.data.iterdir()), [])

    def test_a_limit_judges_it(self):
        self.write("limits.toml", '[[limit]]\nmetric = "storage/local-write-*:bandwidth"\nmin = "1000 TB/s"\n')
        self.measure("--cases", "storage/local-write-0")
        if self.case("local-write-0")[1]["moved_share"][0] < 0.95:
            self.skipTest("no privilege: no storage behind the directory of the test")
        result = self.assay("verdict", "r.h5", "--limits", "limits.toml", "--json", "v.json")
        self.assert_code(result, FAIL)
        self.assertTrue(any(f["suite"] == "storage" and f["reference_kind"] == "limit" for f in self.findings()))

    def test_a_slow_one_among_namesakes_is_named(self):
        options = ["--nodes", "16", "--devices-per-node", "1", "--metrics", "storage", "--force"]
        self.assert_code(self.assay("simulate", "-o", "s.h5", *options), PASS)
        result = self.assay("simulate", "-o", "s.h5", *options, "--fault", "slow:node=5,percent=30")
        self.assert_code(result, FAIL)
        self.assertIn("1 FAIL (sim05) 15 PASS", result.stdout)

    def test_small_files(self):
        result = self.measure("--cases", "storage/metadata-*", level="quick")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stderr)
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        _, values = self.case("metadata-own-0")
        for phase in ("create", "stat", "read", "rename", "delete"):
            self.assertGreaterEqual(len(values[phase]), 3)
            self.assertGreater(min(values[phase]), 0)
        self.assertEqual(values["errors"][0], 0)
        self.assertEqual(values["verified"][0], 1)
        result = self.shared("--cases", "storage/metadata-one-0", "--inject",
                             "bitflip:target=disk-misdirect,rank=1,step=1", level="quick")
        self.assert_code(result, FAIL)
        self.assertEqual(self.case("metadata-one-0")[1]["misdirected"][0], 488)
        self.assertRegex(self.events("storage-damage")[0], r"expected (0x\w+), found .*, read again \1")
        self.assertRegex(self.events("storage-damage")[0], "/data-000000-0: 488 words misdirected")
        self.assertEqual(list(self.data.iterdir()), [])

    def test_slow_storage_gets_smaller_rounds(self):
        self.measure("--cases", "storage/metadata-own-0", "--inject", "slow:rank=1,factor=0.002,suite=storage", level="quick")
        with h5py.File(self.dir / "r.h5") as file:
            self.assertEqual(file["cases/storage/metadata-own-0"].attrs["state"], "pass")
        parameters, values = self.case("metadata-own-0")
        self.assertLess(parameters["files"], 50)
        self.assertRegex(self.events("storage-cut-short")[0], f"rounds of {parameters['files']} instead of 50 files")
        self.assertGreaterEqual(len(values["create"]), 3)
        self.measure("--cases", "storage/checkpoint-0", "--storage.limit", "8MiB", level="quick", space="256MiB")
        parameters, values = self.case("checkpoint-0")
        self.assertLess(parameters["share_bytes"], 8 << 20, "of 64 MiB")
        self.assertRegex(self.events("storage-cut-short")[0], r"samples of \d+ instead of \d+ blocks")
        writes = values["write"] if "write" in values else values["write_cached"]
        self.assertGreaterEqual(len(writes), 3)

    def one_file(self, operation):
        for run, how in ((self.measure, "collective"), (self.shared, "independent")):
            result = run("--cases", f"storage/{operation}-{how}-0", "--inject", "bitflip:target=disk-torn,rank=1,step=1", level="quick")
            if "injected fault without effect" in result.stdout:
                self.skipTest("noise: the second turn, which is to be torn, did not come in the time there was")
            self.assert_code(result, FAIL)
            self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
            parameters, values = self.case(f"{operation}-{how}-0")
            self.assertEqual(parameters["transfers"], how)
            self.assertEqual({k: values[k][0] for k in KINDS if values[k][0]}, {"torn": 47008 // 16}, "and nothing else is wrong")
            self.assertEqual(values["verified"][0], 1)
            self.assertEqual(len(values["write"]), len(values["read"]))
            self.assertRegex(self.events("storage-damage")[0], r"data-mpiio: 2938 words torn\b.* \d+")
            self.assertEqual(list(self.data.iterdir()), [])

    def test_one_file_through_mpi(self):
        self.one_file("mpiio")
        result = self.assay("plan", "--suites", "storage", "--storage.paths", self.data, "--storage.limit", "1GiB")
        for said in ("MPI-IO cannot be held to --storage.limit", "parallel HDF5 cannot be held to --storage.limit", "no GPU is measured"):
            self.assertIn(said, result.stdout)

    def test_one_file_through_parallel_hdf5(self):
        plan = self.assay("plan", "--level", "quick", "--suites", "storage", "--cases", "storage/hdf5-*", "--storage.paths", self.data).stdout
        if "no parallel HDF5" in plan:
            self.skipTest("nightly: parallel HDF5 is not here (Debian: libhdf5-openmpi-dev)")
        self.one_file("hdf5")
        plan = ["plan", "--level", "quick", "--suites", "storage", "--cases", "storage/hdf5-*", "--storage.paths", self.data]
        self.assertRegex(self.mpirun_with("ASSAY_HDF5_LIBRARY=/nowhere.so", *plan).stdout, r"hdf5-collective-0 +not applicable: \S+: no parallel HDF5")

    def test_a_limit_holds_the_rate_down(self):
        self.measure("--storage.limit", "16MiB", "--cases", "storage/local-read-0", space="16MiB")
        parameters, values = self.case("local-read-0")
        self.assertEqual(float(parameters["limit_bytes_per_s"]), 16 << 20)
        name = "bandwidth" if values["moved_share"][0] >= 0.95 else "bandwidth_cached"
        rates = values[name][values[name] == values[name]]
        self.assertGreater(len(rates), 0)
        self.assertLess(max(rates), 1.05 * (16 << 20))
        with h5py.File(self.dir / "r.h5") as file:
            self.assertEqual(file["cases/storage/local-read-0/bandwidth"].attrs["role"], "covariate")
        self.measure("--storage.limit", "1MiB", "--cases", "storage/metadata-own-0", level="quick")
        _, values = self.case("metadata-own-0")
        for phase in ("create", "read", "rename", "delete"):
            self.assertLess(max(values[phase]), 1.05 * (1 << 20) / 4096)

    def test_paths_that_cannot_be_used_are_said(self):
        self.data.rmdir()
        result = self.measure("--cases", "storage/local-read-0")
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("cannot open: No such file or directory", " ".join(result.stdout.split()))
        self.data = pathlib.Path("/sys/kernel")  # nobody can make a directory there
        result = self.measure("--cases", "storage/local-read-0")
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("cannot make:", " ".join(result.stdout.split()))

    def test_two_runs_at_once(self):
        """Two that start at the same time, while the files of a third are there: all find their own data."""
        with contextlib.ExitStack() as all_:
            runs = [all_.enter_context(self.begun("--cases", "storage/checkpoint-0", level="quick", out="0.h5", at_files=True))]
            runs += [all_.enter_context(self.begun(out=f"{i}.h5")) for i in (1, 2)]
            for run in runs:
                self.assertIn(run.wait(90), (PASS, INCONCLUSIVE))
        for i in range(3):
            with h5py.File(self.dir / f"{i}.h5") as file:
                for case in file["cases/storage"].values():
                    self.assertIn(case.attrs["state"], ("pass", "incomplete", "skip"), case.name)
                    if case.attrs["state"] == "pass" and "errors" in case:  # the cases that describe the place check nothing
                        self.assertEqual(case["errors"][0], 0)
        self.assertEqual(list(self.data.iterdir()), [])

    def test_local_directories_are_measured_together(self):
        arguments = self.arguments("--cases", "storage/local-[wr]*", "--inject", "bitflip:target=disk-stale,rank=1,step=1,case=storage/local-read-together",
                                   level="quick")
        paths = [self.data / "a", self.data / "b"]
        for path in paths:
            path.mkdir()
        arguments[arguments.index(self.data)] = ",".join(map(str, paths))
        self.assert_code(self.mpirun(2, *arguments), FAIL)
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        for direction in ("write", "read"):
            parameters, values = self.case(f"local-{direction}-together")
            self.assertEqual(parameters["path"], ",".join(map(str, paths)))
            self.assertGreater(values["verified"][0], 0)
            cold = values["moved_share"][0] >= 0.95
            self.assertGreater(values["bandwidth" if cold else "bandwidth_cached"][0], 0)
            if cold:
                self.assertGreater(values["of_alone"][0], 0)
        self.assertEqual({k: values[k][0] for k in KINDS if values[k][0]}, {"stale": 131072})
        self.assertEqual([list(path.iterdir()) for path in paths], [[], []])

    def test_more_than_is_there_is_refused(self):
        result = self.measure("--cases", "storage/local-read-0", space="1MiB")
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("too little to measure with", " ".join(result.stdout.split()))

    def test_what_is_stopped_leaves_nothing(self):
        others = self.data / "assay-storage-elsewhere-00000000-1-2-3-0123456789abcdef"
        others.mkdir()
        outside = self.dir / "outside"
        outside.mkdir()
        for path in (others / "data-000000", self.data / "data-000000", self.data / "notes", outside / "data-000000"):
            path.write_text(str(path))
        # The case that is killed, whether the path is a shared one, seconds over which the instants are spread.
        kinds = (("checkpoint-0", False, 1.6), ("metadata-own-0", False, 0.4), ("mpiio-collective-0", False, 0.5),
                 ("shared-hard-write-0", True, 0.6), ("*", False, 8.0))
        instants, left = int(os.environ.get("ASSAY_KILLS", "100" if outcome.NIGHTLY else "3")), 0
        for i in range(instants):
            case, shared, span_s = kinds[i % len(kinds)]
            after_s = span_s * (i // len(kinds) + 0.5) * len(kinds) / max(instants, len(kinds))
            with self.subTest(case=case, after_s=after_s):
                stays = self.tree() | {outside / "data-000000"}
                self.interrupt(signal.SIGKILL, after_s, "--cases", "storage/" + case, shared=shared, at_files=case != "*")
                killed = self.tree() - stays
                left += sum(path.is_file() for path in killed)
                self.measure("--cases", "storage/place-*")
                self.assertEqual(self.tree() | set(outside.iterdir()), stays, "the next start removes what was killed, and nothing else")
                if i == 0:  # a link out of the directory, named like a run that was killed
                    name = next(path for path in killed if path.parent == self.data).name
                    (self.data / (name[:-16] + "0" * 16)).symlink_to(outside)
        print(f"\n{instants} kills, {left} files with names left by them")
        self.assertGreater(left, 0, "files with names were there at one of these instants at least")
        for path in self.tree():
            if path.is_file() and not path.is_symlink():
                self.assertEqual(path.read_text(), str(path))

    def test_a_run_that_a_signal_stops_leaves_nothing(self):
        """SIGTERM to the launcher; SIGKILL to one worker, or to all, whose supervisors live."""
        (self.data / "notes").write_text("mine")
        stops = [(signal.SIGTERM, 0, "checkpoint-0", 0.3), (signal.SIGKILL, 1, "checkpoint-0", 0.3), (signal.SIGTERM, 0, "local-*", 2.5),
                 (signal.SIGTERM, 0, "metadata-own-0", 0.1), (signal.SIGKILL, 2, "metadata-own-0", 0.1)]
        for number, workers, case, after_s in harness.share(stops, 3):
            with self.subTest(signal=number.name, workers=workers, case=case):
                with self.begun("--cases", "storage/" + case, level="quick", at_files="local" not in case) as process:
                    if workers == 0:
                        self.stop(process, number, after_s)
                    else:
                        time.sleep(after_s)
                        ranks = self.workers()
                        self.assertEqual(len(ranks), 2)
                        for pid in ranks[:workers]:
                            os.kill(pid, number)
                        process.wait(60)
                        self.wait_for_end()
                self.assertEqual(self.tree(), {self.data / "notes"})
                self.assertEqual(self.processes(), [])

    def test_random_access_has_its_latencies(self):
        result = self.measure("--cases", "storage/local-random-*-q16-0", level="quick")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
        for name in ("local-random-read-q16-0", "local-random-write-q16-0"):
            parameters, values = self.case(name)
            self.assertEqual(values["errors"][0], 0)
            self.assertGreater(values["verified"][0], 0)
            self.assertGreater(values["latency_p50"][0], 0)
            self.assertLessEqual(values["latency_p50"][0], values["latency_p99"][0])
            with h5py.File(self.dir / "r.h5") as file:
                histogram = file[f"cases/storage/{name}/latency_histogram"][:]
            self.assertEqual(histogram.sum(), int(parameters["operations_timed"]))
            self.assertGreaterEqual(histogram.sum(), 1024)
        result = self.measure("--cases", "storage/local-random-read-q16-0", "--inject",
                              "bitflip:target=disk-misdirect,rank=0,step=0", level="quick")
        self.assert_code(result, FAIL)
        self.assertEqual(self.case("local-random-read-q16-0")[1]["misdirected"][0], 512)


if __name__ == "__main__":
    outcome.main()
