#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matmul on one GPU, timed as assay times its own: one line "dtype FLOP/s" per number type, the median of batches of 5 ms.

Usage: gemm_torch.py [--size N] [--seconds S] DTYPE...
"""

import argparse
import statistics
import sys
import time


def operands(torch, dtype, n):
    # All bits of the mantissa: doubles made from floats take less power, and an H200 multiplies them 17 % faster.
    made = torch.float64 if dtype == "fp64" else torch.float32
    a = torch.rand(n, n, device="cuda", dtype=made) * 2 - 1
    b = torch.rand(n, n, device="cuda", dtype=made) * 2 - 1
    if dtype == "int8":
        return (a * 127).to(torch.int8), (b * 127).to(torch.int8).t()
    if dtype.startswith("fp8"):
        left = torch.float8_e5m2 if dtype == "fp8_e5m2" else torch.float8_e4m3fn
        return a.to(left), b.to(torch.float8_e4m3fn).t()
    kind = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[dtype]
    return a.to(kind), b.to(kind)


def product(torch, dtype, a, b):
    if dtype == "int8":
        return lambda: torch._int_mm(a, b)
    if dtype.startswith("fp8"):
        one, fast = torch.ones((), device="cuda"), dtype == "fp8_fast"
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    return lambda: torch.matmul(a, b)


def rate(torch, dtype, n, seconds):
    """Operands rotate, so that they come from memory, not from the cache."""
    sets = [product(torch, dtype, *operands(torch, dtype, n)) for _ in range(3)]
    flops = 2.0 * n**3

    def batch(k):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(k):
            sets[i % len(sets)]()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    batch(5)
    k = max(1, round(5e-3 / (batch(10) / 10)))
    rates, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        rates.append(k * flops / batch(k))
    return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("dtypes", nargs="+")
    args = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        print("gemm_torch.py: PyTorch sees no GPU", file=sys.stderr)
        return 77
    for dtype in args.dtypes:
        print(dtype, f"{rate(torch, dtype, args.size, args.seconds):.6g}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
