#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command to whose processes io_uring_setup answers with an error, as in containers, or openat with O_DIRECT does, as
on some file systems: without_io_uring.py ERRNO|direct COMMAND..."""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, IF_EQUAL, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # instructions of classic BPF (linux/bpf_common.h)
ERROR, ALLOW = 0x00050000, 0x7FFF0000      # SECCOMP_RET_*
IO_URING_SETUP = 425                       # on x86-64, arm64, ppc64le
OPENAT = {"x86_64": 257, "aarch64": 56}.get(platform.machine())
NUMBER, THIRD_ARGUMENT = 0, 32             # in struct seccomp_data


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def io_uring(error):
    return [(LOAD, 0, 0, NUMBER), (IF_EQUAL, 0, 1, IO_URING_SETUP), (RETURN, 0, 0, ERROR | error), (RETURN, 0, 0, ALLOW)]


def direct():
    if OPENAT is None:
        sys.exit("no privilege: the number of openat is not known here")
    return [(LOAD, 0, 0, NUMBER), (IF_EQUAL, 0, 3, OPENAT), (LOAD, 0, 0, THIRD_ARGUMENT), (IF_ANY_BIT, 0, 1, os.O_DIRECT),
            (RETURN, 0, 0, ERROR | errno.EINVAL), (RETURN, 0, 0, ALLOW)]


def forbid(steps):
    program = Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit(f"no privilege: seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    forbid(direct() if sys.argv[1] == "direct" else io_uring(int(sys.argv[1])))
    os.execvp(sys.argv[2], sys.argv[2:])
