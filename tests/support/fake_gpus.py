# SPDX-License-Identifier: Apache-2.0
"""The GPUs that tests pretend to have: descriptions from tests/fake_gpus, for ASSAY_FAKE_GPUS."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fake_gpus"


def small(count=2):
    """Up to four GPUs of 1 GiB, as small as the emulation needs them to be."""
    gpus = json.loads((FOLDER / "four_small.json").read_text())
    del gpus["nodes"]["*"][count:]
    return gpus


def h100():
    """Two GPUs with every value that NVML has."""
    return json.loads((FOLDER / "two_h100.json").read_text())
