# SPDX-License-Identifier: Apache-2.0
"""Finds and hurts the processes of one rank, on this machine or on one virtual host (/proc is shared by all).

A rank is up to two processes of the same program with the same environment: the supervisor, which the launcher started,
and the worker, its child, which does the measuring.
"""

import dataclasses
import os
import pathlib
import signal
import time

RANK_VARIABLES = (b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"PMI_RANK=")


@dataclasses.dataclass(frozen=True)
class RankProcesses:
    rank: int
    host: str  # of the virtual cluster; "" where the rank runs on the machine itself
    supervisor: int  # process id, None where the rank is one process only
    worker: int


def _read(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended, or is another user's
        return b""


def _parent(pid):
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _state(pid):
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return fields[0].decode() if fields else ""


def _rank_of(pid):
    for variable in RANK_VARIABLES:
        for entry in _read(pid, "environ").split(b"\0"):
            if entry.startswith(variable):
                return int(entry[len(variable):])
    return None


def _network(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def find(program, out=None, hosts=()):
    """The processes of `program` (a path), by rank. `out` keeps only those whose command line holds that word, so that
    two runs side by side are told apart. `hosts` are names of virtual hosts."""
    program = os.path.realpath(program)
    host_of = {_network(f"/run/netns/assay-{host}"): host for host in hosts}
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        pid = int(entry)
        try:
            if os.path.realpath(os.readlink(f"/proc/{pid}/exe")) != program:
                continue
        except OSError:
            continue
        if _state(pid) in ("Z", "X", ""):
            continue
        if out is not None and str(out).encode() not in _read(pid, "cmdline").split(b"\0"):
            continue
        rank = _rank_of(pid)
        if rank is not None:
            found.setdefault(rank, set()).add(pid)
    ranks = {}
    for rank, pids in found.items():
        workers = [pid for pid in pids if _parent(pid) in pids]
        # A worker may hold helpers of its own; it is the one whose parent has no parent among them.
        worker = next((pid for pid in workers if _parent(_parent(pid)) not in pids), min(pids))
        supervisor = _parent(worker) if worker in workers else None
        host = host_of.get(_network(f"/proc/{worker}/ns/net"), "")
        ranks[rank] = RankProcesses(rank, host, supervisor, worker)
    return ranks


def wait_for(program, ranks, out=None, hosts=(), guarded=True, timeout_s=20):
    """Waits until all of so many ranks have a worker (and a supervisor)."""
    end = time.monotonic() + timeout_s
    while True:
        found = find(program, out, hosts)
        if len(found) == ranks and (not guarded or all(r.supervisor for r in found.values())):
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{ranks} ranks of {program} expected within {timeout_s} s, found {sorted(found.items())}")
        time.sleep(0.02)


def children(pid):
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _parent(int(entry)) == pid]


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def resume(pid):
    os.kill(pid, signal.SIGCONT)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def gone(pid):
    """Ended, or a zombie that nobody has waited for."""
    return _state(pid) in ("Z", "X", "")
