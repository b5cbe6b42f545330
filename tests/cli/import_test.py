# SPDX-License-Identifier: Apache-2.0
"""assay import: a valid file from measurements of other tools, or one line with file and line, exit 4, and nothing written."""

import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import harness

HEADER = "node,device,metric,unit,better,sample,value\n"
OSU = "# OSU MPI Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n4194304 11000.2\n"


class Import(harness.CliTest):
    def fleet(self, slow=None):
        rows = [f"n{n:02},gpu{d},sgemm,TFLOPS,higher,{s},{(0.7 if slow == (n, d) else 1) * (14 + 0.01 * ((n + 3 * d + 5 * s) % 7)):.4f}\n"
                for n in range(12) for d in range(4) for s in range(6)]
        self.write("fleet.csv", HEADER + "".join(rows))

    def test_a_full_disk_is_told_by_name_and_leaves_nothing(self):
        self.fleet()
        for size in ("8k", "20k", "40k"):
            with self.subTest(size):
                result = self.on_small_disk(size, "import", "csv", "fleet.csv", "-o", "small/fleet.h5")
                self.assert_code(result, 3)
                self.assertEqual((result.stdout, result.stderr), ("", "assay: small/fleet.h5: No space left on device\n"))

    def test_csv_is_judged_like_a_run(self):
        self.fleet(slow=(5, 2))
        result = self.assay("import", "csv", "fleet.csv", "-o", "fleet.h5")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"fleet\.h5: 288 samples .*csv .*\b1 file\b.*\b1 case\b.*\b60 parts\b")
        self.assert_code(self.assay("schema", "--check", "fleet.h5"), 0)
        verdict = self.assay("verdict", "fleet.h5")
        self.assertIn("n05/gpu2", verdict.stdout)
        self.assertNotIn("n05/gpu1:", verdict.stdout)
        self.assertEqual(self.left_behind(), ["fleet.csv", "fleet.h5"])

    def test_rows_that_are_there_twice_are_said(self):
        self.fleet()
        text = (self.dir / "fleet.csv").read_text()
        self.write("fleet.csv", text + "".join(text.splitlines(keepends=True)[1:4]))
        result = self.assay("import", "csv", "fleet.csv", "-o", "fleet.h5")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"fleet\.h5: 288 samples ")
        self.assertIn("fleet.h5: 3 rows word for word the same as before: counted once", result.stdout)

    def test_several_files_are_one_measurement(self):
        self.write("bw@n1,n2.txt", OSU)
        self.write("bw@n2,n3.txt", OSU)
        self.assert_code(self.assay("import", "osu", "bw@n1,n2.txt", "bw@n2,n3.txt", "-o", "o.h5"), 0)
        samples = self.assay("export", "o.h5", "--csv").stdout
        self.assertIn("n1/host>n2/host", samples)
        self.assertIn("n2/host>n3/host", samples)

    def pairs(self, nodes, of_n1, from_bytes=1):
        """An output of osu_bw for each pair; those of n1 have `of_n1` of the rate from a message size on."""
        noise = random.Random(nodes)
        files = []
        for a, b in itertools.combinations(range(nodes), 2):
            lines = ["# OSU MPI Bandwidth Test v5.9", "# Size      Bandwidth (MB/s)"]
            for size in (2**k for k in range(23)):
                slow = of_n1 if 1 in (a, b) and size >= from_bytes else 1
                lines.append(f"{size} {12000 * size / (size + 8000) * noise.gauss(1, 0.05) * slow:.2f}")
            files.append(f"bw@n{a},n{b}.txt")
            self.write(files[-1], "\n".join(lines) + "\n")
        self.assert_code(self.assay("import", "osu", *files, "-o", "o.h5", "--force"), 0)
        return self.assay("verdict", "o.h5")

    def test_sizes_that_agree_name_the_slow_node_of_a_few(self):
        """One sample of each pair and size proves nothing, sizes that agree do."""
        for nodes in [3, 4, 5]:
            self.assertNotIn("WARN", self.pairs(nodes, 1.0).stdout)
            for from_bytes in [1, 65536]:
                slow = self.pairs(nodes, 0.5, from_bytes)
                self.assertRegex(slow.stdout, r"(?m)^WARN  n1: all its pairs slow")
                self.assertEqual(slow.stdout.count("WARN  n"), 1)
            self.assert_code(self.pairs(nodes, 0.05), 2)

    def test_sizes_that_agree_name_the_slow_one_of_two_nodes(self):
        """And one finding for each node, not one for each size."""
        for slow, wrong, expected in [(1.0, "0 OK", 0), (0.5, "0 OK", 1), (1.0, "12 FAILED", 0)]:
            noise = random.Random(7)
            for node in range(2):
                lines = ["# nThread 1 nGpus 2 minBytes 8 maxBytes 33554432 step: 2(factor) validation: 1", "# Using devices"]
                lines += [f"#  Rank {g:2} Group  0 Pid {100 + g} on  node{node} device  {g} [0x{g:02x}] NVIDIA H100" for g in range(2)]
                lines.append("#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong")
                for size in (2**k for k in range(3, 26)):
                    row = f"{size} {size // 4} float sum -1"
                    for _ in range(2):
                        us = (30 + size / 300e3) * noise.gauss(1, 0.02) / (slow if node == 1 else 1)
                        row += f" {us:.2f} {size / us / 1e3:.2f} {size / us / 1e3:.2f} 0"
                    lines.append(row)
                lines += [f"# Out of bounds values : {wrong}", "# Avg bus bandwidth    : 100.0"]
                self.write(f"n{node}.txt", "\n".join(lines) + "\n")
            self.assert_code(self.assay("import", "nccl-tests", "n0.txt", "n1.txt", "-o", "n.h5", "--force"), 0)
            told = self.assay("verdict", "n.h5").stdout
            if "FAILED" in wrong:
                self.assertRegex(told, r"(?m)^FAIL  node0: 12 wrong values in nccl-tests/")
                continue
            self.assertEqual(re.findall(r"(?m)^(?:INFO|WARN|FAIL)  (\w+):", told), ["node1"] * expected)
            self.assertEqual("WARN  node1" in told, expected == 1)

    def test_an_error_names_file_and_line_and_leaves_nothing(self):
        self.write("bad.csv", HEADER + "n1,0,x,GB/s,higher,0,1\nn1,0,x,GB/s,higher,1,fast\n")
        self.assert_error(["import", "csv", "bad.csv", "-o", "x.h5"], "bad.csv:3: 'fast'")
        self.assert_error(["import", "nccl-tests", "bad.csv", "-o", "x.h5"], "bad.csv: nccl-tests")
        self.assert_error(["import", "osu", "bad.csv", "-o", "x.h5"], "bad.csv: OSU")
        self.assert_error(["import", "csv", "none.csv", "-o", "x.h5"], "none.csv:")
        self.write("block.csv", "node,metric,unit,better,value,block\nn1,x,GB/s,higher,1,1000001\n")
        self.assert_error(["import", "csv", "block.csv", "-o", "x.h5"], "block.csv:2: block 1000001")
        self.write("noise.csv", bytes(range(256)) * 20)
        for kind in ["csv", "nccl-tests", "osu"]:
            self.assert_error(["import", kind, "noise.csv", "-o", "x.h5"], "noise.csv")

    def test_a_part_that_lacks_a_sample_can_drift(self):
        rows = ["node,metric,unit,better,value,time,block"]
        for i in range(128):
            for n in range(12):
                loss = 0.15 * i / 127 if n == 3 else 0
                value = 100 * (1 - loss) * (1 + 0.0005 * ((7 * i + 5 * n) % 11 - 5))
                rows.append(f"n{n:02},x,GB/s,higher,{'N/A' if (n, i) == (3, 61) else value},{i},{i // 4 + 1}")
        self.write("drift.csv", "\n".join(rows) + "\n")
        self.assert_code(self.assay("import", "csv", "drift.csv", "-o", "drift.h5"), 0)
        self.assay("verdict", "drift.h5", "--json", "drift.json")
        self.assertEqual([f["name"] for f in json.loads((self.dir / "drift.json").read_text())["findings"] if f["kind"] == "drift"], ["n03"])

    def test_twenty_thousand_metrics(self):
        """Each is a case of the file: an honest table of half a MB may not be taken for one that does not end."""
        self.write("wide.csv", "node,metric,unit,better,value\n" + "".join(f"n{i % 4},m{i},GB/s,higher,{100 + i % 7}\n" for i in range(20000)))
        result = self.assay("import", "csv", "wide.csv", "-o", "wide.h5")
        self.assert_code(result, 0)
        self.assertIn("20000 cases", result.stdout)

    def test_a_node_with_wrong_values_fails_beside_others(self):
        """In its JSON and in its text, where only the end of one output tells of them."""
        def text(node, end):
            return ("# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) validation: 1 graph: 0\n# Using devices\n"
                    f"#  Rank  0 Group  0 Pid 1 on {node} device  0 [0x04] NVIDIA H100\n"
                    "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
                    "134217728 33554432 float sum -1 1028.1 130.55 244.78 0 1031.2 130.16 244.05 N/A\n"
                    f"# Out of bounds values : {end}\n# Avg bus bandwidth    : 122.2\n")

        def in_json(node, wrong):
            return json.dumps({"config": {"devices": [{"hostname": node, "device": 0, "device_info": "H100"}]},
                               "results": [{"size": 8, "type": "float", "redop": "sum",
                                            "out_of_place": {"time": 20.0, "alg_bw": 5.0, "bus_bw": 5.0, "nwrong": None}}],
                               "out_of_bounds": {"count": wrong, "okay": str(wrong == 0).lower()}})
        for ending, make, good, bad in [("txt", text, "0 OK", "3 FAILED"), ("json", in_json, 0, 3)]:
            files = [f"all_reduce{n}.{ending}" for n in range(3)]
            for n, file in enumerate(files):
                self.write(file, make(f"n{n}", bad if n == 1 else good))
            self.assert_code(self.assay("import", "nccl-tests", *files, "-o", "n.h5", "--force"), 0)
            self.assert_code(self.assay("schema", "--check", "n.h5"), 0)
            verdict = self.assay("verdict", "n.h5")
            self.assert_code(verdict, 2)
            self.assertRegex(verdict.stdout, r"(?m)^FAIL  n1: 3 wrong values in nccl-tests/all_reduce-")
            self.assertEqual(verdict.stdout.count("FAIL  n"), 1)

    def test_files_without_a_value_are_named_beside_others(self):
        self.fleet()
        self.write("gone.csv", HEADER + "n77,gpu0,sgemm,TFLOPS,higher,0,N/A\n")
        self.write("empty.csv", "")
        result = self.assay("import", "csv", "gone.csv", "fleet.csv", "empty.csv", "-o", "f.h5")
        self.assert_code(result, 0)
        first, *rest = result.stdout.splitlines()
        self.assertRegex(first, "288 samples of csv from 3 files.*: INCONCLUSIVE$")
        self.assertEqual(rest, ["f.h5: gone.csv has no samples", "f.h5: empty.csv is empty: what it should hold was not measured",
                                "f.h5: 1 row without a value (empty or N/A): left out", "f.h5: no value of n77/gpu0 in imported/sgemm"])
        self.assert_code(self.assay("schema", "--check", "f.h5"), 0)
        verdict = self.assay("verdict", "f.h5", "--nodes", "nodes.txt")
        self.assert_code(verdict, 3)
        *others, gone = sorted((self.dir / "nodes.txt").read_text().splitlines())
        self.assertEqual((others, gone), ([f"n{n:02} PASS" for n in range(12)], "n77 INCONCLUSIVE no value of n77/gpu0 in imported/sgemm"))
        self.assert_error(["import", "csv", "empty.csv", "gone.csv", "-o", "x.h5"], "empty.csv: is empty")

    def test_nothing_is_left_where_the_reading_process_is_ended(self):
        self.write("wide.csv", "node,metric,unit,better,value\n" + "".join(f"n{i % 4},m{i},GB/s,higher,{100 + i % 7}\n" for i in range(20000)))
        for _ in range(20):  # on a fast machine the import may be faster
            with subprocess.Popen([harness.ASSAY, "import", "csv", "wide.csv", "-o", "w.h5"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                while process.poll() is None and not (self.dir / "w.h5.partial").exists():
                    time.sleep(0.001)
                for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                    os.kill(int(child), signal.SIGKILL)
                said = process.stderr.read()
            if process.returncode != 0:
                break
            (self.dir / "w.h5").unlink()
        self.assertEqual((process.returncode, said), (4, "assay: wide.csv: reading it does not end (signal 9): the file is damaged, or was made to do so\n"))
        self.assertEqual(self.left_behind(), ["wide.csv"])

    def test_usage(self):
        self.fleet()
        self.assert_error(["import"], "import: FORMAT")
        self.assert_error(["import", "csv"], "import: FILES")
        self.assert_error(["import", "xml", "fleet.csv", "-o", "x.h5"], "import: 'xml' csv nccl-tests osu")
        self.assert_error(["import", "csv", "fleet.csv"], "import: -o FILE")
        self.assert_error(["import", "csv", "fleet.csv", "-o", "fleet.csv", "--force"], "--output: 'fleet.csv'")
        self.assert_error(["import", "csv", "fleet.csv", "./fleet.csv", "-o", "x.h5"], "import: './fleet.csv' is given twice")
        (self.dir / "soft.csv").symlink_to("fleet.csv")
        os.link(self.dir / "fleet.csv", self.dir / "hard.csv")
        for other in ("soft.csv", "hard.csv", str(self.dir / "fleet.csv")):
            self.assert_error(["import", "csv", "fleet.csv", other, "-o", "x.h5"], f"import: '{other}' is given twice also as 'fleet.csv'")

    def test_an_existing_file_is_kept_without_force(self):
        self.fleet()
        self.write("x.h5", "mine")
        self.assert_error(["import", "csv", "fleet.csv", "-o", "x.h5"], "x.h5 exists")
        self.assertEqual((self.dir / "x.h5").read_text(), "mine")
        self.assert_code(self.assay("import", "csv", "fleet.csv", "-o", "x.h5", "--force"), 0)


if __name__ == "__main__":
    harness.main()
