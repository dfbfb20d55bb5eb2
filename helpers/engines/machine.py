"""How large this machine is, container limits included."""

import os
from pathlib import Path


def memory_bytes() -> int:
    """What we may use of the memory."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = [*_cgroup("memory.max"), "max"][0]
    return size if limit == "max" else min(size, int(limit))


def core_count() -> int:
    """Cores that this process may use: a container may have fewer than the machine."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, period = [*_cgroup("cpu.max"), "max", ""][:2]
    return count if quota == "max" else max(1, min(count, round(int(quota) / int(period))))


def _cgroup(name: str) -> list[str]:
    """A limit that a Linux container set for us; nothing elsewhere."""
    try:
        return Path("/sys/fs/cgroup", name).read_text().split()
    except OSError:
        return []
