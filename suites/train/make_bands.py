#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the regret bands of preset.cpp: trains a preset with many seeds and prints the table in C++.

  suites/train/make_bands.py --assay build/assay --preset tiny --steps 200 --every 20
  suites/train/make_bands.py --assay bin/assay --preset small --steps 200 --every 20 --device cuda --type bf16

Every seed is a run of its own of `assay run --suites train --cases train/PRESET-together` on one rank. A larger batch stands for
more ranks: the mean gradient of n ranks is that of one rank with n times the sequences. At each point the regret is the mean of
the 10 steps before it. With d the difference of the largest and the least value seen (at least 0.1 nat), the band reaches d/2
above the largest and d below the least, because batches beyond those tried learn faster; but never below -0.02, what the noise of
a regret near zero can be. The largest batch goes into the preset, too: above it the lower end is -0.02. The seeds are a sample;
what a band is to catch (a broken layer, a wrong rate, dead attention) is off by far more.
"""
import argparse
import csv
import os
import re
import statistics
import subprocess
import tempfile

WINDOW = 10
LEAST_DIFFERENCE = 0.1


def regrets(options, seed, batch, folder):
    """The regret of each step of one run."""
    out = os.path.join(folder, f"{seed}-{batch}.h5")
    command = [options.assay, "run", "--suites", "train", "--cases", f"train/{options.preset}-together", "--quiet",
               "--level", "extended", "--train.preset", options.preset, "--train.steps", str(options.steps),
               "--train.batch", str(batch), "--seed", str(seed), "--device", options.device, "--out", out]
    if options.threads:
        command += ["--threads", str(options.threads)]
    if options.type:
        command += ["--train.type", options.type]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if not os.path.exists(out):
        raise SystemExit(f"make_bands.py: no results: {' '.join(command)}\n{run.stdout}{run.stderr}")
    exported = subprocess.run([options.assay, "export", out, "--csv"], capture_output=True, text=True, check=True)
    os.unlink(out)
    values = [float(row["value"]) for row in csv.DictReader(exported.stdout.splitlines())
              if row["case"] == f"{options.preset}-together" and row["metric"] == "regret" and row["rank"] == "0"]
    if len(values) < options.steps:
        raise SystemExit(f"make_bands.py: {len(values)} steps of {options.steps}: {' '.join(command)}\n{run.stdout}")
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
    parser.add_argument("--threads", type=int, help="of the host; its share of the cores when not given")
    parser.add_argument("--device", default="host", help="host or cuda")
    parser.add_argument("--type", help="fp32 or bf16 (GPUs)")
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
                    at_points = [statistics.fmean(values[step - WINDOW:step]) for step in points]
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
