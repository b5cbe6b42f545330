# SPDX-License-Identifier: Apache-2.0
"""What root's scripts refuse: places that others can change, settings that others wrote, names that stand for many nodes."""

import os
import re
import shutil
import subprocess
import unittest

import drain_test
import place
from temporary_folder import temporary_folder


# What writes to the results, and what writes to the state of a node.
WRITERS = ("nightly.sh", "acceptance.sh", "soak.sh")
CHECKS = ("slurm/prolog.sh", "slurm/healthcheck.sh")


class Places(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.settings(ASSAY=self.fake_assay(), ASSAY_STATE=self.dir / "state")
        self.runs(place.COPY)
        self.made(nodes=4)

    def refused(self, *words, code=4, script="nightly.sh"):
        result = self.script(script)
        self.assert_code(result, code)
        said = result.stdout + result.stderr
        for word in words:
            self.assertIn(word, said)

    def test_results_that_others_can_write(self):
        self.results.mkdir()
        self.results.chmod(0o777)
        for script in WRITERS:
            with self.subTest(script=script):
                self.refused("results can be written by others", script=script)
                self.assertEqual(list(self.results.iterdir()), [])

    def test_results_behind_a_symbolic_link(self):
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        self.results.symlink_to(elsewhere)
        for script in WRITERS:
            with self.subTest(script=script):
                self.refused("results is a symbolic link", script=script)
                self.assertEqual(list(elsewhere.iterdir()), [])

    def test_a_history_that_leads_elsewhere(self):
        self.results.mkdir()
        (self.dir / "elsewhere").mkdir()
        (self.results / "history").symlink_to(self.dir / "elsewhere")
        self.refused("history is a symbolic link")
        self.assertEqual(list((self.dir / "elsewhere").iterdir()), [])

    def test_results_in_a_folder_that_others_can_write(self):
        above = self.dir / "above"
        above.mkdir()
        above.chmod(0o777)
        self.settings(ASSAY=self.fake_assay(), ASSAY_RESULTS=above / "results")
        self.refused("above can be written by others")
        above.chmod(0o1777)  # as /tmp is: nobody can move what belongs to somebody else
        self.assert_code(self.script("nightly.sh"), 0)

    def test_what_the_scripts_make_is_safe_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0o002))
        for script in WRITERS:
            with self.subTest(script=script):
                result = self.script(script)
                self.assertNotIn("can be written by others", result.stdout + result.stderr)
        made = [path for path in self.results.rglob("*") if path.is_dir()]
        self.assertGreater(len(made), len(WRITERS))
        self.assertEqual([str(path) for path in made if path.stat().st_mode & 0o022], [])

    @unittest.skipUnless(os.geteuid() == 0, "no privilege: only root can give a directory away")
    def test_what_belongs_to_others(self):
        self.results.mkdir()
        os.chown(self.results, 65534, 65534)
        for script in WRITERS:
            self.refused("results belongs to", script=script)
        os.chown(self.results, 0, 0)
        (self.dir / "state").mkdir()
        os.chown(self.dir / "state", 65534, 65534)
        for script in CHECKS:
            self.refused("state belongs to", code=0, script=script)
            self.assertEqual(list((self.dir / "state").iterdir()), [])
        os.chown(self.dir / "site.conf", 65534, 65534)
        self.refused("settings are not read", "site.conf belongs to")

    def test_settings_that_others_can_write(self):
        (self.dir / "site.conf").write_text((self.dir / "site.conf").read_text() + f"touch {self.dir}/owned\n")
        (self.dir / "site.conf").chmod(0o666)
        self.refused("settings are not read", "site.conf can be written by others")
        self.assertFalse((self.dir / "owned").exists())

    def test_settings_are_those_that_were_looked_at(self):
        """bash looks for a name without a slash in PATH."""
        (self.dir / "bin" / "site.conf").write_text(f"touch {self.dir}/owned\n")
        result = self.script("nightly.sh", env={"ASSAY_SITE": "site.conf"})
        self.assertFalse((self.dir / "owned").exists())
        self.assert_code(result, 0)

    @unittest.skipUnless(os.geteuid() == 0, "no privilege: for root only the folder counts")
    def test_settings_that_others_can_replace(self):
        self.dir.chmod(0o777)
        self.refused("settings are not read", "can be written by others")

    def test_the_state_of_a_prolog_in_the_wrong_hands(self):
        """It is not written to, and no job is kept away by that."""
        victim = self.dir / "victim"
        victim.write_text("mine")
        for script in CHECKS:
            file = os.path.basename(script).replace(".sh", ".txt")
            shutil.rmtree(self.dir / "state", ignore_errors=True)
            (self.dir / "state").mkdir()
            (self.dir / "state" / file).symlink_to(victim)
            (self.dir / "state").chmod(0o777)
            self.refused("state can be written by others", code=0, script=script)
            self.assertEqual(victim.read_text(), "mine")
            shutil.rmtree(self.dir / "state")
            elsewhere = self.dir / "elsewhere"
            elsewhere.mkdir(exist_ok=True)
            (self.dir / "state").symlink_to(elsewhere)
            self.refused("state is a symbolic link", code=0, script=script)
            self.assertEqual(list(elsewhere.iterdir()), [])
            (self.dir / "state").unlink()

    def test_metrics_do_not_follow_a_link(self):
        victim = self.dir / "victim"
        victim.write_text("mine")
        (self.dir / "assay.prom.new").symlink_to(victim)
        self.settings(ASSAY=self.fake_assay(), ASSAY_PROM=self.dir / "assay.prom")
        self.assert_code(self.script("nightly.sh"), 0)
        self.assertEqual(victim.read_text(), "mine")
        self.assertIn("assay_", (self.dir / "assay.prom").read_text())


    def test_metrics_are_for_all_to_read(self):
        """node_exporter is another user, whatever the umask of the night."""
        self.addCleanup(os.umask, os.umask(0o077))
        self.settings(ASSAY=self.fake_assay(), ASSAY_PROM=self.dir / "assay.prom")
        for _ in range(2):
            self.assert_code(self.script("nightly.sh"), 0)
            self.assertEqual((self.dir / "assay.prom").stat().st_mode & 0o777, 0o644)


class Names(drain_test.Drain):
    """A node whose name stands for many: every one of the eight would be drained."""

    MANY = ("ALL", "all", "NodeList", "NODELIST", "node[0-7]", "node1,node2")

    def evil(self, name):
        """A run in which the slow node is called so."""
        import h5py
        shutil.copy(self.dir / "bad.h5", self.dir / "evil.h5")
        with h5py.File(self.dir / "evil.h5", "r+") as file:
            for column in ("name", "id"):
                values = file["entities/" + column]
                values[...] = [re.sub(r"\bnode3\b", name, v.decode()) for v in values[...]]

    def test_a_soak_leaves_out_no_name_that_stands_for_many(self):
        self.settings(ASSAY=self.fake_assay(), ASSAY_SOAK_SEGMENTS="2")
        self.program("scontrol", "#!/bin/sh\nprintf 'node%s\\n' 0 1 2 3 4 5 6 7\n")
        self.program("sbatch", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{self.dir}/submitted\n")
        self.runs(place.COPY.replace("made.h5", "evil.h5"))
        for name in ("node3", *self.MANY):
            with self.subTest(name=name):
                self.evil(name)
                self.assert_code(self.script("soak.sh", env={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "node[0-7]"}), 2)
                folder = next(self.results.glob("*/soak-1"))
                honest = name == "node3"
                self.assertRegex((folder / "seg01" / "nodes.txt").read_text(), rf"(?m)^{re.escape(name)} FAIL ")
                self.assertEqual((folder / "failed.txt").read_text(), "node3\n" if honest else "")
                submitted = (self.dir / "submitted").read_text().splitlines()
                asked = [f"node{node}" for node in range(8) if not honest or node != 3]
                self.assertEqual([word for word in submitted if "node" in word and word.startswith(("--nodes", "--nodelist", "--exclude"))],
                                 [f"--nodes={len(asked)}", "--nodelist=" + ",".join(asked)])
                shutil.rmtree(folder)

    def test_names_that_stand_for_many(self):
        for name in (*self.MANY, "set1"):
            self.evil(name)
            (self.slurm / name).write_text("IDLE\n")
            result = self.drain("--apply", "evil.h5", "--limits", "l.toml")
            self.assertEqual([c for c in self.calls() if name in c], [], result.stdout + result.stderr)
            self.assertIn("name that Slurm knows" if name != "set1" else "by this name alone", result.stdout + result.stderr)

    def setUp(self):
        super().setUp()
        # Slurm answers for a node set with all its nodes.
        real = (self.dir / "bin" / "scontrol").read_text()
        self.program("scontrol", real.replace("  show)", "  show)\n    if [ \"${@: -1}\" = set1 ]; then\n"
                                              "      printf 'NodeName=node%s State=IDLE\\n' 1 2; exit 0; fi"))


for inherited in [n for n in dir(drain_test.Drain) if n.startswith("test_") and n not in vars(Names)]:
    setattr(Names, inherited, None)  # they have their own file


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
class Units(unittest.TestCase):
    def test_exposure(self):
        unit = temporary_folder(self.addCleanup) / "assay-nightly.service"
        unit.write_text((place.SCRIPTS / "systemd/assay-nightly.service.in").read_text().replace("@ASSAY_SCRIPTS@/nightly.sh", "/bin/true"))
        told = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=40", unit], capture_output=True, text=True)
        if "unrecognized option" in told.stderr:
            self.skipTest("this systemd-analyze knows no --offline")
        self.assertEqual(told.returncode, 0, told.stdout[-300:] + told.stderr)
        self.assertRegex(told.stdout, r"exposure level for assay-nightly.service: [0-3]\.\d|4\.0")


if __name__ == "__main__":
    place.main()
