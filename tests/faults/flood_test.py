# SPDX-License-Identifier: Apache-2.0
"""Strangers at the door of the collector: 10,000 connections a second from another process delay no start, and the door is shut after it."""

import json
import os
import subprocess
import threading
import time

import common
import harness

RATE, SECONDS = 10_000, 12.0
# The last rank comes late: until then the collector must listen.
LATE = 'if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then sleep 1.5; fi; exec "$ASSAY" "$@"'


def port_in(folder):
    """The port in the rendezvous file, once there is one."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for path in folder.glob(".assay-guard-*"):
            try:
                return json.loads(path.read_text())["port"]
            except (OSError, ValueError):
                pass
        time.sleep(0.002)
    raise AssertionError("nobody listened")


class Flood(common.FaultTest):
    def run_late(self, out):
        begin = time.monotonic()
        result = harness.execute([harness.MPIEXEC, "-n", "3", "sh", "-c", LATE, "sh", "run", "--suites", "selftest", "--selftest.cases", "pass,skip",
                                  "--out", out], self.dir, {"ASSAY": harness.ASSAY})
        self.assertIn("started in", result.stderr)
        return result.returncode, time.monotonic() - begin

    def test_a_flood_delays_no_start(self):
        quiet_code, quiet_s = self.run_late("quiet.h5")
        told = []

        def flood():
            told.append(subprocess.run([os.environ["ASSAY_FLOODER"], str(port_in(self.dir)), str(RATE), str(SECONDS)],
                                       capture_output=True, text=True, timeout=SECONDS + 60).stdout)

        flooder = threading.Thread(target=flood)
        flooder.start()
        try:
            code, seconds = self.run_late("flooded.h5")
        finally:
            flooder.join()
        made, lasted, refused = told[0].split()
        said = f"{made} connections in {lasted} s, start and end in {seconds:.1f} s instead of {quiet_s:.1f} s"
        print(said)
        self.assertEqual(code, quiet_code)
        self.assertLess(seconds, quiet_s + 5, said)
        self.assertEqual(refused, "1", "somebody listened when all ranks were there: " + said)
        self.assertGreater(float(lasted), 0.5, "the flood came too late: " + said)
        # As many as a busy machine can, but a flood.
        if int(made) < 0.2 * RATE * float(lasted):
            self.skipTest(f"noise: {said}; {RATE} a second are wanted")


if __name__ == "__main__":
    common.main()
