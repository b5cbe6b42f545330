#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The suite that reads and writes files on file systems that are full, read-only, gone or broken, mounted for each test."""

import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import harness
import outcome

# Mounts of this process only: none is left, however it ends.
INSIDE = "ASSAY_TEST_MOUNTS"
if INSIDE not in os.environ:
    private = ["unshare", "--mount", "--propagation", "private"]
    probe = subprocess.run([*private, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        outcome.skip_file(f"no privilege: mounts ({probe.stderr.strip()})")
    os.environ[INSIDE] = "1"
    os.execvp(private[0], [*private, sys.executable, "-B", *sys.argv])

from storage_runs import FAIL, INCONCLUSIVE, PASS, StorageTest, h5py  # noqa: E402

MIB = 1 << 20
LIBC = ctypes.CDLL(None)
MS_REMOUNT = 32


def run(*command):
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


def used(path):
    info = os.statvfs(path)
    return (info.f_blocks - info.f_bfree) * info.f_frsize


class Mounts(StorageTest):
    def mount(self, *options):
        run("mount", *options, self.data)
        self.addCleanup(subprocess.run, ["umount", "-l", self.data], capture_output=True, check=False)

    def memory(self, options="size=8g"):
        self.mount("-t", "tmpfs", "-o", options, "none")

    def shrink(self, limit):
        """
        The memory file system holds `limit` bytes from now on, or a little more than it holds. Whether it is `limit`. By a call,
        since a library writes all of a file in the time that a program takes to start.
        """
        while True:
            size = max(limit, used(self.data) + 65536)
            if LIBC.mount(b"none", os.fsencode(self.data), b"tmpfs", MS_REMOUNT, f"size={size}".encode()) == 0:
                return size == limit

    def loop(self, make=("mkfs.ext4", "-q", "-O", "^has_journal")):
        """A file system on a loop device on the file `self.image`."""
        self.image = self.write("image", "")
        os.truncate(self.image, 9 << 30)
        made = subprocess.run([*make, self.image], capture_output=True, text=True, check=False)
        if made.returncode != 0 or subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"no privilege: loop devices ({' '.join(make)}: {made.stderr.strip()})")
        self.mount("-o", "loop", self.image)
        self.device = subprocess.run(["losetup", "-n", "-O", "NAME", "-j", self.image], check=True, capture_output=True, text=True).stdout.split()[0]
        shutil.rmtree(self.data / "lost+found", ignore_errors=True)

    def meanwhile(self, action, *args, when=MIB, shared=False, **settings):
        """A run; as soon as `when` bytes of its directory are used, `action` is called. What it returned, in a list."""
        base, over, called = used(self.data), threading.Event(), []

        def watch():
            while not over.is_set():
                if used(self.data) - base >= when:
                    return called.append(action())
                time.sleep(0.001)

        watcher = threading.Thread(target=watch)
        watcher.start()
        result = (self.shared if shared else self.measure)(*args, **settings)
        over.set()
        watcher.join()
        return result, called

    def warned(self):
        return "".join(f["text"] for f in self.findings() if f["severity"] == "WARN")

    def test_a_full_disk_is_a_finding_wherever_it_becomes_full(self):
        cases = ["local-write-0", "local-read-0", "shared-easy-write-0", "shared-hard-write-0", "local-random-write-q1-0", "checkpoint-0",
                 "mpiio-collective-0", "mpiio-independent-0", "hdf5-independent-0"]
        if "no parallel HDF5" in self.assay("plan", "--level", "quick", "--suites", "storage", "--storage.paths", self.data).stdout:
            cases.pop()
        places = 50 if outcome.NIGHTLY else 2
        for i in range(places):
            case = cases[i % len(cases)]
            limit = 2 * MIB + i * (12 if "random" in case else 22) * MIB // places
            through_library = case.startswith(("mpiio", "hdf5"))  # which no limit slows
            limited = () if through_library else ("--storage.limit", "96MiB" if "random" in case else "64MiB")
            with self.subTest(case=case, limit=limit):
                for _ in range(20):
                    self.memory()
                    result, in_time = self.meanwhile(
                        lambda: self.shrink(limit),
                        *limited, "--cases", "storage/" + case, when=65536 if through_library else MIB, shared=case.startswith("shared"),
                        level="quick" if i < 2 else "standard")
                    # Files of `local-read` are written within milliseconds: the disk may shrink when all of them are there. On a
                    # busy machine files are made smaller, and the disk may not shrink at all.
                    if in_time and result.returncode != PASS:
                        break
                    run("umount", self.data)
                self.assertTrue(in_time, result.stdout + result.stderr)
                self.assert_code(result, INCONCLUSIVE)
                where = r"(write at offset \d+|(MPI-IO|HDF5) (write|sync|flush).*)" if through_library else r"write at offset \d+"
                self.assertRegex(self.warned(), where + ": No space left on device")
                self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
                self.assertEqual(list(self.data.iterdir()), [])
                run("umount", self.data)

    def test_no_more_is_used_than_was_asked_for(self):
        """By all files of a run at any time: directories and the blocks of small files have their own."""
        self.memory()
        for run_in, cases in ((self.measure, "storage/*"), (self.shared, "storage/[!f]*")):
            base, over, most = used(self.data), threading.Event(), [0]

            def watch():
                while not over.wait(0.001):
                    most[0] = max(most[0], used(self.data) - base)

            watcher = threading.Thread(target=watch)
            watcher.start()
            result = run_in("--cases", cases, level="quick")
            over.set()
            watcher.join()
            self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
            self.assertGreater(most[0], 24 * MIB)
            self.assertLess(most[0], 65 * MIB)

    def test_verification_takes_a_twentieth_of_the_time_at_most(self):
        """Where data are read at the rate of memory. What else runs on the cores delays one part or the other: the best of three."""
        self.memory()
        shares = []
        while not shares or (min(shares) > 0.05 and len(shares) < 3):
            self.assertIn(self.measure("--cases", "storage/local-*", level="quick", space="2GiB").returncode, (PASS, INCONCLUSIVE))
            with h5py.File(self.dir / "r.h5") as file:
                cases = list(file["cases/storage"].values())
                self.assertGreaterEqual(len(cases), 6)
                self.assertTrue(all(case["verified"][0] > 0 and case["errors"][0] == 0 for case in cases))
                shares.append(sum(case.attrs["verify_s"] for case in cases) / sum(case.attrs["wall_s"] for case in cases))
        print(f"\nverification took {', '.join(f'{100 * s:.1f} %' for s in shares)} of the time")
        self.assertLessEqual(min(shares), 0.05)

    def test_a_disk_with_less_than_the_reserve_is_not_written_to(self):
        self.memory("size=1g")
        for case in ("local-write-0", "metadata-own-0", "checkpoint-0"):
            with self.subTest(case=case):
                result = self.measure("--cases", "storage/" + case, level="quick")
                self.assert_code(result, INCONCLUSIVE)
                self.assertIn("too little to measure with", " ".join(result.stdout.split()))

    def test_a_disk_without_inodes_is_a_finding_and_with_too_few_there_are_fewer_files(self):
        for inodes in harness.share([2, 3, 20, 4, 5, 7, 51, 102], 3):
            with self.subTest(inodes=inodes):
                self.memory(f"size=8g,nr_inodes={inodes}")
                result = self.measure("--cases", "storage/metadata-own-0", level="quick")
                self.assertIn(result.returncode, (PASS, INCONCLUSIVE) if inodes > 4 else (INCONCLUSIVE,))
                self.assertEqual("No space left on device" in self.warned(), inodes == 2, "none for a directory")
                said = self.events("storage-cut-short") if inodes > 4 else result.stdout.split()
                self.assertIn("inodes are free", " ".join(said))
                if inodes > 4:
                    self.assertEqual(sum("inodes are free" in text for text in said), 1, "of all ranks")
                self.assertEqual(list(self.data.iterdir()), [])
                run("umount", self.data)

    def test_a_read_only_disk_is_said(self):
        self.memory("size=8g,ro")
        result = self.measure()
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("Read-only file system", " ".join(result.stdout.split()))

    def test_a_path_that_vanishes_ends_the_run_in_order(self):
        def unmount():
            run("umount", "-l", self.data)

        def remove():
            for path in self.data.iterdir():
                shutil.rmtree(path, ignore_errors=True)

        for vanish, case in harness.share([(unmount, "*"), (remove, "metadata-*"), (remove, "*"), (unmount, "metadata-*")], 2):
            with self.subTest(how=vanish.__name__, case=case):
                self.memory()
                result, called = self.meanwhile(vanish, "--cases", f"storage/{case}", level="smoke" if case == "*" else "quick", when=1)
                self.assertTrue(called)
                self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
                self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
                if vanish is unmount:
                    self.assert_code(result, INCONCLUSIVE)
                    self.assertRegex(" ".join(result.stdout.split()), f"{self.data}: lies in .* now, and lay in tmpfs of none")
                else:
                    subprocess.run(["umount", "-l", self.data], capture_output=True, check=False)
                self.assertEqual(list(self.data.iterdir()), [], "nothing is written beneath the mount")

    def test_files_keep_their_names_while_a_rank_has_them_open(self):
        """On NFS a file that one client has open does not survive its removal by another."""
        seen, removed = set(), set()
        with self.begun("--cases", "storage/shared-*", shared=True, at_files=True) as process:
            while process.poll() is None:
                for pid in self.processes():
                    with contextlib.suppress(OSError):
                        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                            with contextlib.suppress(OSError):
                                file = os.readlink(fd)
                                if file.startswith(str(self.data)) and "/data-" in file:
                                    (removed if file.endswith(" (deleted)") else seen).add(file)
                time.sleep(0.01)
        self.assertTrue(seen)
        self.assertEqual(removed, set())
        self.assertEqual(list(self.data.iterdir()), [])

    def test_bytes_changed_beneath_the_file_system_are_located(self):
        self.loop()
        changed = []

        def change():
            """Eight bytes of a block that holds words of the run: those of the file system are mostly zero."""
            with open(self.image, "r+b", buffering=0) as image:
                at = 0
                while True:
                    at = os.lseek(image.fileno(), at, os.SEEK_DATA)
                    page = os.pread(image.fileno(), 4096, at)
                    if page.count(0) < 64:
                        break
                    at += 4096
                was, now = page[512:520], os.urandom(8)
                os.pwrite(image.fileno(), now, at + 512)
                changed.append((int.from_bytes(was, "little"), int.from_bytes(now, "little")))

        for _ in range(4):  # on a loaded machine the block may have been read before it is changed
            changed.clear()
            result, called = self.meanwhile(change, "--cases", "storage/local-read-0", level="quick", when=24 * MIB)
            if called and result.returncode != PASS:
                break
        if not called:
            self.skipTest("noise: no moment was seen at which the disk held 24 MiB of the run")
        self.assertTrue(changed)
        self.assert_code(result, FAIL)
        was, now = changed[0]
        told = self.events("storage-damage")
        self.assertRegex(told[0], rf"data-00000[01]: 1 words foreign\b.* \d+ .*{was:#018x}, .*{now:#018x}, .*{now:#018x}")
        self.assertEqual([(f["suite"], f["level"]) for f in self.findings() if f["kind"] == "corrupt"], [("storage", "node")])
        self.assertEqual(list(self.data.iterdir()), [])

    def test_a_disk_that_is_idle_is_no_source_of_what_is_read(self):
        """A loop device hands out what the kernel keeps of its file: the process has read it, the disk beneath has not."""
        self.loop()
        self.tell_idle_disks(("cached", "direct"))

    def test_a_disk_beneath_a_btrfs_is_found(self):
        if shutil.which("mkfs.btrfs") is None or "btrfs" not in pathlib.Path("/proc/filesystems").read_text():
            self.skipTest("no privilege: no btrfs in this kernel")
        self.loop(("mkfs.btrfs", "-q"))
        self.tell_idle_disks(("cached",))

    def two_disks(self):
        """A btrfs that spreads its data over two disks: their names, and what holds the second one to a rate. The file of its loop
        device is on a file system on another loop device, which nobody sees who looks for disks."""
        groups = pathlib.Path("/sys/fs/cgroup/blkio")
        if not (groups / "cgroup.procs").exists():
            self.skipTest("no privilege: blkio controller of cgroups of version 1")
        memory, hidden = self.dir / "memory", self.dir / "hidden"
        memory.mkdir()
        hidden.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=20g", "none", memory)
        self.addCleanup(subprocess.run, ["umount", "-l", memory], capture_output=True, check=False)
        for image, size in ((memory / "outer", 10 << 30), (memory / "first", 9 << 30)):
            image.touch()
            os.truncate(image, size)
        run("mkfs.ext4", "-q", "-O", "^has_journal", memory / "outer")
        if subprocess.run(["mount", "-o", "loop", memory / "outer", hidden], capture_output=True, check=False).returncode != 0:
            self.skipTest("no privilege: loop devices")
        limited = os.stat(hidden).st_dev
        (hidden / "second").touch()
        os.truncate(hidden / "second", 9 << 30)
        disks = [subprocess.run(["losetup", "--find", "--show", "--direct-io=on", file], check=True, capture_output=True, text=True).stdout.strip()
                 for file in (memory / "first", hidden / "second")]
        self.addCleanup(subprocess.run, ["umount", "-l", hidden], capture_output=True, check=False)
        run("mount", "-t", "tmpfs", "none", hidden)
        self.addCleanup(subprocess.run, ["umount", "-l", hidden], capture_output=True, check=False)
        run("mkfs.btrfs", "-q", "-d", "raid0", "-m", "raid0", *disks)
        self.mount(disks[0])
        for disk in disks:
            run("losetup", "--detach", disk)  # as soon as it is unmounted
        group = groups / f"assay-{os.getpid()}"
        group.mkdir()
        self.addCleanup(group.rmdir)
        self.addCleanup((groups / "cgroup.procs").write_text, str(os.getpid()))
        (group / "cgroup.procs").write_text(str(os.getpid()))  # and what it starts

        def limit(rate):
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{os.major(limited)}:{os.minor(limited)} {rate}")

        return [pathlib.Path(disk).name for disk in disks], limit

    @staticmethod
    def work(disks, way):
        """What each has done until now: requests, and the milliseconds that they took (Documentation/block/stat.rst)."""
        columns = [list(map(int, pathlib.Path(f"/sys/block/{disk}/stat").read_text().split())) for disk in disks]
        return [(of[0], of[3]) if way == "read" else (of[4], of[7]) for of in columns]

    def test_a_slow_disk_of_several_is_named(self):
        if shutil.which("mkfs.btrfs") is None or "btrfs" not in pathlib.Path("/proc/filesystems").read_text():
            self.skipTest("no privilege: no btrfs in this kernel")
        disks, limit = self.two_disks()
        for case, rate in (("local-read-0", 0), ("local-read-0", 40_000_000), ("local-write-0", 40_000_000)):
            with self.subTest(case=case, rate=rate):
                limit(rate)
                way = case.split("-")[1]
                before = self.work(disks, way)
                self.assert_code(self.measure("--cases", "storage/" + case, level="quick"), PASS)
                told = self.events("storage-slow-disk")
                if rate == 0:
                    self.assertEqual(told, [])
                    continue
                # Others keep busy the cores on which loop devices do their work, or the disk beneath: both are slow then, or do little.
                (beside, other_ms), (own, slow_ms) = ((n - n0, (ms - ms0) / max(1, n - n0)) for (n, ms), (n0, ms0) in zip(self.work(disks, way), before))
                if not told and (slow_ms < 2 * other_ms or min(beside, own) < 100):
                    self.skipTest(f"noise: {beside} requests of the disk without a limit took {other_ms:.1f} ms each, {own} of the slow one {slow_ms:.1f} ms")
                self.assertRegex("".join(told), rf"^{self.data}: {disks[1]} took [\d.]+ m?s for a request, [\d.]+ times the .* in storage/{case}$")

    def tell_idle_disks(self, ways):
        for way in ways:
            run("losetup", f"--direct-io={'on' if way == 'direct' else 'off'}", self.device)
            for case in ("local-write-0", "local-read-0"):
                result = self.measure("--cases", "storage/" + case, level="quick")
                self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
                _, values = self.case(case)
                if "device_share" not in values:
                    self.skipTest(f"no privilege: {self.dir} is on no file system of a disk that counts")
                self.assertGreaterEqual(values["moved_share"][0], 0.95, "the process itself cannot tell them apart")
                idle = values["device_share"][0] < 0.95
                if values["device_share"][0] > 1.5:
                    self.skipTest(f"noise: others moved {values['device_share'][0]:.1f} times as many bytes on the disk of {self.dir}")
                self.assertEqual(idle, case == "local-read-0" and way == "cached", (case, way, values["device_share"]))
                judged, cached = (values[name][values[name] == values[name]] for name in ("bandwidth", "bandwidth_cached"))
                self.assertEqual((len(judged) == 0, len(cached) == 0), (idle, not idle))
                self.assertEqual(any("the disks or the NFS client moved" in text for text in self.events("storage-cached")), idle)

    def test_a_disk_that_refuses_is_a_fault(self):
        self.loop()

        def shrink():
            os.truncate(self.image, 4 * MIB)
            run("losetup", "--set-capacity", self.device)

        shrunk = []
        for attempt in range(10):
            # A busy machine writes less in the time of the case.
            result, called = self.meanwhile(shrink, "--cases", "storage/local-read-0", level="quick", when=(24 if attempt == 0 else 8) * MIB)
            if not called:
                continue
            shrunk.append(result)
            failed = "".join(f["text"] for f in self.findings() if f["severity"] == "FAIL")
            # All may have been read before. And what ext4 answers where its own blocks lie beyond the end: files are still being made then.
            if result.returncode != PASS and "Cannot allocate memory" not in failed:
                break
            run("umount", self.data)
            self.loop()
        if not shrunk:
            self.skipTest("noise: no moment was seen at which the disk held 8 MiB of the run")
        self.assert_code(shrunk[-1], FAIL)
        # Between the two steps the end of the disk is there, and zero.
        self.assertRegex(failed, r"data-00000[01]: ((read|write) at offset \d+|sync): Input/output error|wrong values .* actual 0x0000000000000000")

    @outcome.nightly
    def test_a_disk_that_stops_does_not_hold_the_run(self):
        self.loop()
        self.addCleanup(subprocess.run, ["fsfreeze", "--unfreeze", self.data], capture_output=True, check=False)
        started = time.monotonic()
        result, called = self.meanwhile(lambda: run("fsfreeze", "--freeze", self.data), "--cases", "storage/local-write-0", when=4 * MIB)
        self.assertTrue(called)
        self.assert_code(result, INCONCLUSIVE)
        self.assertLess(time.monotonic() - started, 60)
        self.assertIn("hang", "".join(f["kind"] for f in self.findings()))
        self.assertIn(f"at work on files in {self.data}", "".join(f["text"] for f in self.findings()))
        run("fsfreeze", "--unfreeze", self.data)
        end = time.monotonic() + 10
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [])


if __name__ == "__main__":
    outcome.main()
