#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of scripts/bench_gpu.sh: gemm_table.py FOLDER ROUNDS SIZE DTYPE... reads FOLDER/assay.R.csv and FOLDER/torch.R."""

import csv
import pathlib
import statistics
import sys


def of_assay(path, size):
    rates = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["metric"] != "throughput":
                continue
            dtype, _, rest = row["case"].rpartition("/")[2].partition("-")
            if rest == f"n{size}-together":
                rates.setdefault(dtype, []).append(float(row["value"]))
    return {dtype: statistics.median(values) for dtype, values in rates.items()}


def of_torch(path):
    return {dtype: float(rate) for dtype, rate in (line.split() for line in path.read_text().splitlines())}


def table(folder, rounds, size, dtypes):
    ours = [of_assay(folder / f"assay.{r}.csv", size) for r in range(1, rounds + 1)]
    theirs = [of_torch(folder / f"torch.{r}") for r in range(1, rounds + 1)]
    lines = ["| type | assay, TFLOP/s | PyTorch, TFLOP/s | ratio (least to most) |", "|---|---|---|---|"]
    for dtype in dtypes:
        pairs = [(a[dtype], t[dtype]) for a, t in zip(ours, theirs) if dtype in a and dtype in t]
        if len(pairs) < rounds:
            lines.append(f"| {dtype} | measured in {len(pairs)} of {rounds} rounds | | |")
            continue
        ratios = [a / t for a, t in pairs]
        lines.append(f"| {dtype} | {statistics.median(a for a, _ in pairs) / 1e12:.1f} | {statistics.median(t for _, t in pairs) / 1e12:.1f} | "
                     f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
