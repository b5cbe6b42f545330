# SPDX-License-Identifier: Apache-2.0
"""The lock of scripts/nightly.sh where two nights find the same stale one."""

import os
import pathlib
import socket

import place

# Between the look at the lock and its removal another night, which still runs, takes the place of the stale one.
MV = """#!/bin/bash
if [[ "$*" == *nightly.lock.dead* ]] && [ ! -e {here}/taken ]; then
  touch {here}/taken
  rm -rf {lock}
  mkdir {lock}
  {fresh}
fi
exec /bin/mv "$@"
"""


class Lock(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.settings(ASSAY=self.fake_assay())
        self.runs(place.COPY)
        self.lock = self.results / "nightly.lock"
        self.lock.mkdir(parents=True)
        (self.lock / "owner").write_text(f"{socket.gethostname()} 999999999 1 -\n")
        start = pathlib.Path("/proc/self/stat").read_text().rsplit(") ", 1)[1].split()[19]
        self.other = f"{socket.gethostname()} {os.getpid()} {start} -"

    def mv(self, fresh):
        self.program("mv", MV.format(here=self.dir, lock=self.lock, fresh=fresh))

    def test_a_fresh_lock_in_the_place_of_a_stale_one_stays(self):
        self.mv(f"echo '{self.other}' >{self.lock}/owner")
        result = self.script("nightly.sh")
        self.assert_code(result, 3)
        self.assertEqual(result.stderr, f"nightly.sh: another night is still running ({self.lock}: {self.other})\n")
        self.assertEqual((self.lock / "owner").read_text(), self.other + "\n")
        self.assertEqual([path.name for path in self.results.iterdir() if "lock" in path.name], ["nightly.lock"])

    def test_a_fresh_lock_without_its_owner_is_known_by_its_time(self):
        (self.lock / "owner").unlink()
        os.utime(self.lock, (1e9, 1e9))
        self.mv("true")
        result = self.script("nightly.sh")
        self.assert_code(result, 3)
        self.assertIn("another night is still running", result.stderr)
        self.assertEqual(list(self.lock.iterdir()), [])

    def test_a_night_removes_no_lock_but_its_own(self):
        self.made(nodes=2)
        self.runs(place.COPY + f'(here / "results" / "nightly.lock" / "owner").write_text({self.other + chr(10)!r})\n')
        self.assert_code(self.script("nightly.sh"), 0)
        self.assertEqual((self.lock / "owner").read_text(), self.other + "\n")


if __name__ == "__main__":
    place.main()
