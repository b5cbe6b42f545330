# SPDX-License-Identifier: Apache-2.0
"""Training: PyTorch on the CPU and, where its directory is given, llm.c's CPU trainer, with the BLAS that assay uses."""
import os
import re
import tempfile

import programs
from programs import Assay, Unavailable

HERE = os.path.dirname(os.path.abspath(__file__))
# width, layers, heads, vocabulary, length, sequences: as in suites/train/preset.cpp
SHAPES = {"tiny": (128, 2, 4, 32, 64, 8), "small": (384, 6, 6, 64, 128, 4)}


def same_blas(openmp, blas):
    """OpenBLAS with the kernels that assay makes it use on this CPU, and so many threads of each kind."""
    env = {"OMP_NUM_THREADS": str(openmp), "OPENBLAS_NUM_THREADS": str(blas)}
    with open("/proc/cpuinfo") as file:
        flags = file.read()
    core = "SkylakeX" if " avx512f " in flags else "Haswell" if " avx2 " in flags else ""
    if core:
        env["OPENBLAS_CORETYPE"] = core
    return env


class Trainer:
    """A peer with the numbers of threads that are its fastest here: two pools of threads easily get in each other's way."""

    def __init__(self, command, threads):
        self.command, self.env = command, {}
        choices = [same_blas(openmp, blas) for openmp in {1, threads} for blas in {1, threads}]
        self.env = max(choices, key=self.rate)

    def rate(self, env):
        return float(programs.call(self.command, env=env).stdout.split()[-1])

    def __call__(self):
        return self.rate(self.env)


def torch(shape, threads, steps):
    return Trainer(["/usr/bin/python3", os.path.join(HERE, "peer_gpt.py"), *shape, steps], threads)


def build_llmc(source, folder):
    """llm.c's own file with its two matrix products renamed, our driver around it, and OpenBLAS."""
    path = os.path.join(source, "train_gpt2.c")
    if not os.path.exists(path):
        raise Unavailable(f"no train_gpt2.c in {source}")
    with open(path) as file:
        text = file.read()
    text = re.sub(r"^void matmul_(forward|backward)\(", r"void llmc_matmul_\1(", text, flags=re.M)
    with open(os.path.join(folder, "llmc.c"), "w") as file:
        file.write(text)
    program = os.path.join(folder, "peer_llmc")
    programs.call(["cc", "-O3", "-Ofast", "-march=native", "-fopenmp", "-w", f"-I{folder}", f"-I{source}", "-o", program,
                   os.path.join(HERE, "peer_llmc.c"), "-lopenblas", "-lm"])
    return program


def compare(assay, options, row_type, interleave, absent):
    rows, theirs, missing = {}, {}, []
    steps = {"tiny": 60 if options.quick else 200, "small": 6 if options.quick else 12}
    with tempfile.TemporaryDirectory() as folder:
        program = ""
        if options.llmc:
            try:
                program = build_llmc(options.llmc, folder)
            except Unavailable as error:
                missing.append(("train", "llm.c, same BLAS", str(error)))
        else:
            missing.append(("train", "llm.c, same BLAS", "it is not packaged; --llmc DIR compares with its CPU trainer"))
        for preset, shape in SHAPES.items():
            peers = [("PyTorch, CPU", 1.0, lambda: torch(shape, options.threads, steps[preset]))]
            if program:
                peers.append(("llm.c, same BLAS", 2.0, lambda: Trainer([program, *shape, steps[preset]], options.threads)))
            for peer, target, make in peers:
                try:
                    trainer = make()
                except Unavailable as error:
                    missing.append((f"train {preset}", peer, str(error)))
                    continue
                row = row_type(f"train {preset}", peer, "ktoken/s", 1e3, target)
                rows[row], theirs[row] = preset, trainer

        def ours():
            values = {}
            for preset in SHAPES:
                cases = assay.run(1, ["--suites", "train", "--level", "quick", "--train.preset", preset,
                                      "--train.steps", str(steps[preset]), "--cases", f"train/{preset}-together"])
                values[preset] = Assay.value(cases, f"train/{preset}-together", "throughput")
            return {row: values[preset] for row, preset in rows.items()}

        if rows:
            interleave(options.pairs, list(rows), ours, theirs)
    return list(rows) + [absent(*one) for one in missing]
