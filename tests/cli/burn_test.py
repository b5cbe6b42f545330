# SPDX-License-Identifier: Apache-2.0
"""Burns: everything at once, and pulses, on hosts."""

import harness

ANY = ["run", "--suites", "burn", "--level", "smoke", "--burn.size", "256", "--burn.memory", "64MiB", "--quiet", "--out", "r.h5"]
BURN = [*ANY, "--burn.duration", "3s"]
SHORT = [*ANY, "--burn.duration", "1s"]  # where no rate is looked at


def pulses(hertz):
    """12 of them."""
    return [*ANY, "--burn.duration", f"{12 // hertz}s", "--cases", "pulse*", "--burn.pulse", str(hertz)]


class Burn(harness.CliTest):
    def open(self):
        import h5py
        return h5py.File(self.dir / "r.h5")

    def miscompares(self, file):
        names = [n.decode() for n in file["entities/name"][:]]
        return {(case.decode(), names[entity].split("/")[-1]) for case, entity in zip(file["errors/case"][:], file["errors/entity"][:])}

    def test_options_that_cannot_be_are_refused(self):
        plan = ["plan", "--suites", "burn", "--level", "smoke"]
        for hertz, name in [("1,1", "pulse-1000ms-d50-together"), ("7,7.01", "pulse-143ms-d50-together")]:
            self.assert_error([*plan, "--burn.pulse", hertz], f"--burn.pulse: '{hertz.split(',')[1]}' {name}")
        self.assert_error([*plan, "--burn.memory", "1MiB"], "--burn.memory: 2 MiB")
        self.assertNotIn("needs 1000 GiB", self.assay(*plan, "--burn.parts", "compute", "--burn.memory", "1000GiB").stdout)
        self.assertIn("needs 1000 GiB; the memory budget is", self.assay(*plan, "--burn.memory", "1000GiB").stdout)

    def planned(self, *args):
        result = self.assay("plan", "--launcher", "none", *args)
        self.assert_code(result, 0)
        return [line.split() for line in result.stdout.splitlines() if line.startswith("burn ")]

    def test_all_parts_burn_at_once_and_are_verified(self):
        result = self.mpirun(2, *BURN)
        self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
        with self.open() as file:
            case = file["cases/burn/mixed-together"]
            self.assertEqual(case["parameters"].attrs["parts"], "compute,memory,links")
            for metric in ("throughput", "bandwidth", "busbw"):
                self.assertGreater(harness.taken(self, case, metric).min(), 0, metric)
            self.assertEqual(case["errors"][:].max(), 0)
            self.assertEqual(len(set(case["digest"][:].tolist())), 1)
            tests = file["selftest"]
            self.assertEqual(tests["checker"][:].tolist(), [b"burn"] * 2)
            for column in ("injected", "caught", "located", "counted"):
                self.assertEqual(tests[column][:].tolist(), [3, 3], column)
            self.assertEqual(len(file["errors/case"][:]), 0)

    def test_only_what_is_asked_for_burns(self):
        self.assertIn(self.mpirun(2, *SHORT, "--burn.parts", "memory").returncode, (0, 3))
        with self.open() as file:
            case = file["cases/burn/mixed-together"]
            self.assertIn("bandwidth", case)
            self.assertNotIn("throughput", case)
            self.assertNotIn("busbw", case)
            self.assertEqual(file["selftest/injected"][:].tolist(), [1, 1])

    def test_a_wrong_value_of_any_part_is_found_on_its_device(self):
        for target in ("gemm", "memory", "allreduce"):
            with self.subTest(target=target):
                result = self.mpirun(2, *SHORT, "--force", "--inject", f"bitflip:target={target},rank=1")
                self.assert_code(result, 2)
                with self.open() as file:
                    self.assertEqual(self.miscompares(file), {("burn/mixed-together", "cores1")})
                    self.assertEqual(file["cases/burn/mixed-together"].attrs["addresses"], 0)
                    self.assertLess(max(file["errors/index"]), 64 * 2**20 // 8)  # words of the memory under test

    def test_pulses_are_in_phase_and_every_one_is_verified(self):
        # Pulses begin where they should, but for a machine that is busy with something else: there are three tries. The last ones are long
        # enough for the turns that processes take on a core.
        late = []
        for hertz in (4, 4, 1):
            result = self.mpirun(2, *pulses(hertz), "--force", "--burn.duty", "0.4")
            self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
            if result.returncode == 3 and not (self.dir / "r.h5").exists():
                late.append("no rank was in time")
                continue
            late.append(self.pulses_are_verified(1 / hertz))
            if max(late[-1]) < 0.08 / hertz:
                break
        else:
            self.skipTest(f"noise: half of the pulses, and the clocks of the ranks, are off by {late} s")
        result = self.mpirun(2, *pulses(4), "--force", "--inject", "bitflip:target=gemm,rank=0")
        self.assert_code(result, 2)
        with self.open() as file:
            self.assertEqual(self.miscompares(file), {("burn/pulse-250ms-d50-together", "cores0")})

    def pulses_are_verified(self, period_s):
        """How late half of the pulses begin at most, and the skew of their edges."""
        with self.open() as file:
            case = file[f"cases/burn/pulse-{1000 * period_s:.0f}ms-d40-together"]
            self.assertEqual(case["throughput"].shape, (2, 6))  # 12 pulses, of which 3 grow and 3 shrink
            rates = case["throughput"][:]
            if (rates != rates).any():  # a pulse in which a busy machine left a rank no time for a product
                return float("inf"), 0.0
            self.assertGreater(rates.min(), 0)
            self.assertGreaterEqual(case["lag"][:].min(), 0)
            steps = case["t"][:, 1:] - case["t"][:, :-1]
            self.assertTrue((abs(steps - period_s) < 1e-4).all(), steps)
            self.assertEqual(file["selftest/located"][:].tolist(), [1, 1])
            self.assertEqual(len(set(case["digest"][:].tolist())), 1)
            return sorted(case["lag"][:].ravel())[6], float(case["parameters"].attrs["edge_skew_s"])

    def test_burns_come_only_with_a_soak_or_by_name_and_pulses_only_by_name(self):
        self.assertEqual(self.planned("--level", "quick"), [])
        self.assertEqual(self.planned("--level", "extended"), [])
        self.assertEqual([row[1] for row in self.planned("--level", "soak", "--duration", "1h")], ["burn/mixed-together"])
        self.assertEqual([row[1] for row in self.planned("--suites", "burn")], ["burn/mixed-together"])
        self.assertEqual([row[1] for row in self.planned("--burn.pulse", "0.5")], ["burn/pulse-2000ms-d50-together"])

    def test_one_node_pulses_unless_told_otherwise(self):
        four = ["--as-nodes", "4", "--burn.pulse", "1"]
        self.assertEqual([row[2] for row in self.planned(*four)], ["1"])
        self.assertEqual([row[2] for row in self.planned(*four, "--burn.pulse-nodes", "all")], ["4"])
        self.assertEqual([row[2] for row in self.planned(*four, "--burn.pulse-nodes", "3")], ["3"])

    def test_bad_values_are_named(self):
        run = ["run", "--suites", "burn", "--out", "r.h5"]
        for args, line in ((["--burn.pulse", "20"], "--burn.pulse: '20'"), (["--burn.pulse", "fast"], "--burn.pulse: 'fast'"),
                           (["--burn.pulse", "1", "--burn.duty", "0.95"], "--burn.duty:"), (["--burn.pulse", "1", "--burn.pulse-nodes", "0"], "--burn.pulse-nodes: '0'"),
                           (["--burn.duration", "0.5s"], "--burn.duration:"), (["--burn.duration", "1h"], "--burn.duration: mixed-together"), (["--burn.ramp", "1h"], "--burn.ramp:"), (["--burn.size", "17"], "--burn.size:"),
                           (["--device", "host", "--burn.dtype", "bf16"], "--burn.dtype:")):
            with self.subTest(args=args):
                self.assert_error(run + args, line)


if __name__ == "__main__":
    harness.main()
