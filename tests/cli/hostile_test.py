# SPDX-License-Identifier: Apache-2.0
"""Files made to hurt: forged bytes with a checksum that fits. ASSAY_FORGED sets how many (default 25)."""

import os
import random
import shutil
import struct

import harness
from temporary_folder import temporary_folder
import outcome

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def mix2(a, b):
    return mix(mix(a) ^ ((b * 0xD6E8FEB86659FD93) & MASK))


def sealed(content):
    """The content with the trailer that readers check first, as an attacker would make it."""
    lanes = [1, 2, 3, 4]
    padded = content + bytes(-len(content) % 32)
    for i, word in enumerate(struct.unpack(f"<{len(padded) // 8}Q", padded)):
        lanes[i % 4] = mix(lanes[i % 4] ^ word)
    value = mix(len(content))
    for lane in lanes:
        value = mix2(value, lane)
    return content + b"assaysum" + struct.pack("<QQQ", len(content), value, mix2(len(content), value))


class Hostile(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.good = temporary_folder(cls.addClassCleanup) / "good.h5"
        run = [harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", "pass,skip", "--quiet", "--out"]
        result = harness.execute([*run, str(cls.good)], cls.good.parent)
        assert result.returncode == 3, result.stderr
        cls.content = cls.good.read_bytes()[:-32]

    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 32) if outcome.NIGHTLY else 7
        self.rng = random.Random(self.seed)
        self.count = int(os.environ.get("ASSAY_FORGED", "25"))

    def forged(self, content):
        changed = bytearray(content)
        for _ in range(self.rng.choice([1, 1, 2, 8])):
            # most of the structure lies in the beginning of each block of metadata, much of the rest is zero
            used = [i for i in self.rng.sample(range(len(changed)), 40) if changed[i] != 0]
            changed[self.rng.choice(used or [0])] = self.rng.choice([0, 1, 0x7F, 0x80, 0xFF, self.rng.randrange(256)])
        return sealed(bytes(changed))

    def assert_survived(self, args):
        """An answer or one line, never a signal, and nothing left behind."""
        before = self.left_behind()
        result = self.assay(*args)
        self.assertIn(result.returncode, (0, 1, 2, 3, 4), f"seed {self.seed}: {args}: {result.stderr}")
        if result.returncode == 4:
            self.assertEqual(result.stderr.count("\n"), 1, f"seed {self.seed}: {args}: {result.stderr}")
            self.assertTrue(result.stderr.startswith("assay: "))
            self.assertEqual(self.left_behind(), before)
        return result

    def test_the_checksum_here_is_that_of_the_program(self):
        self.assertEqual(sealed(self.content), self.good.read_bytes())

    def test_forged_files(self):
        commands = [["inspect"], ["verdict"], ["export", "--jsonl"], ["export", "--table"], ["schema", "--check"]]
        refused = 0
        for number in range(self.count):
            self.write("bad.h5", self.forged(self.content))
            command = commands[number % len(commands)]
            refused += self.assert_survived([*command, "bad.h5"]).returncode == 4
        self.assertGreater(refused, 0)

    def test_forged_case_files(self):
        partial = self.dir / "run.h5.partial"
        self.leave_partial(partial)
        case = next((partial / "cases").glob("*.h5"))
        content = case.read_bytes()[:-32]
        for number in range(self.count):
            case.write_bytes(self.forged(content))
            copy = self.dir / "copy.h5.partial"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(partial, copy)
            if number % 2 == 0:
                self.assert_survived(["verdict", "copy.h5.partial"])
            else:
                self.assert_survived(["recover", "copy.h5.partial", "-o", "out.h5", "--force"])

    def test_terminals_are_safe(self):
        """A name cannot carry commands to the terminal of whoever inspects the file."""
        import h5py
        shutil.copy(self.good, self.dir / "evil.h5")
        with h5py.File(self.dir / "evil.h5", "r+") as file:
            names = file["entities/name"]
            names[...] = ["\x1b]0;owned\x07" + name.decode() for name in names[...]]
            file.attrs["command_line"] = "assay \x1b[2J\x9b31m run"
        for command in [["inspect"], ["verdict"], ["export", "--table"], ["schema", "--check"]]:
            result = self.assay(*command, "evil.h5", "--no-color") if command[0] != "schema" else self.assay(*command, "evil.h5")
            self.assertNotIn("\x1b", result.stdout + result.stderr, command)
            self.assertNotIn("\x9b", result.stdout, command)


if __name__ == "__main__":
    harness.main()
