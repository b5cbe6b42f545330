#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the regret bands of preset.cpp: trains a preset with many seeds and prints the table in C++.

  suites/train/make_bands.py --assay build/assay --preset tiny --steps 200 --every 20

Every seed is a run of its own of `assay run --suites train --cases train/PRESET-together` on one rank. A larger batch
stands for more ranks: the mean gradient of n ranks is that of one rank with n times the sequences. At each point the
regret is the mean of the 10 steps before it. With d the difference of the largest and the least value seen (at least 0.1 nat), the band reaches
d/2 above the largest and d below the least, because batches beyond those tried learn faster; but never below -0.02, what the noise of
a regret near zero can be. The seeds are a sample; what a band is to catch (a broken layer, a wrong rate, dead attention) is off by far more.
"""
import argparse
import os
import re
import subprocess
import tempfile

import h5py
import numpy as np

WINDOW = 10
LEAST_DIFFERENCE = 0.1


def regrets(options, seed, batch, folder):
    out = os.path.join(folder, f"{seed}-{batch}.h5")
    command = [options.assay, "run", "--suites", "train", "--cases", f"train/{options.preset}-together", "--quiet",
               "--level", "extended", "--train.preset", options.preset, "--train.steps", str(options.steps),
               "--train.batch", str(batch), "--seed", str(seed), "--threads", str(options.threads), "--out", out]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    with h5py.File(out) as file:
        values = file[f"cases/train/{options.preset}-together/regret"][0]
    os.unlink(out)
    return values


def known_from(path):
    """{(batch, seed): regrets at the points} of an earlier output."""
    with open(path, encoding="utf-8") as file:
        lines = re.findall(r"^// batch (\d+) seed (\d+): (.*)$", file.read(), re.M)
    return {(int(batch), int(seed)): [float(word) for word in values.split()] for batch, seed, values in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assay", required=True)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--batches", default="8:20,32:4", help="sequences per step : seeds, ...")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--known", help="an earlier output of the same preset and points: what it holds is not trained again")
    options = parser.parse_args()
    known = known_from(options.known) if options.known else {}
    points = range(options.every, options.steps + 1, options.every)
    seen = {step: [] for step in points}
    with tempfile.TemporaryDirectory() as folder:
        for part in options.batches.split(","):
            batch, seeds = map(int, part.split(":"))
            for seed in range(1, seeds + 1):
                at_points = known.get((batch, 1000 * batch + seed))
                if at_points is None:
                    values = regrets(options, 1000 * batch + seed, batch, folder)
                    at_points = [float(np.mean(values[step - WINDOW:step])) for step in points]
                for step, value in zip(points, at_points):
                    seen[step].append(value)
                print(f"// batch {batch} seed {1000 * batch + seed}: " +
                      " ".join(f"{seen[step][-1]:.3f}" for step in points), flush=True)
    for step in points:
        low, high = min(seen[step]), max(seen[step])
        d = max(LEAST_DIFFERENCE, high - low)
        print(f"    {{{step}, {max(-0.02, low - d):.2f}, {high + d / 2:.2f}}},  // seen {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
