"""Processes under measurement: the CPU time they use, what others use meanwhile, and bounds on how
long they may take. Servers run on one CPU, clients on another."""

import os
import resource
import signal
import time

SERVER_CPU, CLIENT_CPU = 0, 1


def tree(root):
    """All processes of the tree below and with `root`."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    pids = [root]
    for pid in pids:
        pids += children.get(pid, [])
    return pids


def cpu_seconds(pids):
    """The CPU time that living processes have used, all threads together."""
    total = 0
    for pid in pids:
        try:
            # As clock_getcpuclockid(3) makes it: the process's scheduler clock.
            total += time.clock_gettime(~pid << 3 | 2)
        except OSError:
            pass  # it has ended
    return total


def busy_seconds():
    """The time that the two CPUs were not idle, whatever used it; in ticks."""
    with open("/proc/stat", encoding="ascii") as stat:
        lines = [line.split() for line in stat]
    ticks = [sum(map(int, line[1:9])) - int(line[4]) - int(line[5])
             for line in lines if line[0] in (f"cpu{SERVER_CPU}", f"cpu{CLIENT_CPU}")]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def listening_address(server):
    """The address that the server prints; the watchdog is what ends a server that never does."""
    for line in server.stdout:
        if "listening on " in line:
            return line.split("listening on ")[1].split()[0].rstrip(",")
    raise RuntimeError("the server ended before it listened")


def limit(pid, seconds):
    """Ends the process `pid` unless the alarm is taken back within `seconds`."""
    def late(*_):
        os.kill(pid, signal.SIGKILL)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)


def end(server, seconds):
    """Ends a server, by force after `seconds`."""
    if server.poll() is None:
        server.terminate()
    limit(server.pid, seconds)
    server.wait()
    signal.alarm(0)


def allow_descriptors():
    """As many as the machine lets a process have, also those it starts."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
