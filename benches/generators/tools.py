"""The load generators: how each is asked for the same work, and how its result is read.

A tool gives the requests that were answered, its own figure of requests a second, and the
percentiles of the response times it reports; None where it reports none.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from typing import Callable

from servers import ECHO_BYTES

HERE = os.path.dirname(os.path.abspath(__file__))
UPLOAD_BYTES = 10_000_000
ENDLESS = 10 ** 9  # requests, for tools that want a number though a time ends them


@dataclass
class Work:
    """What a tool has to do: for some seconds, or so many requests where it can count them."""
    ports: list
    clients: int
    directory: str
    throng: str
    seconds: float | None = None
    requests: int | None = None
    protocol: str = "echo"
    streams: int = 1  # of a connection of HTTP/2

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports[0]}/"

    @property
    def whole_seconds(self):
        return max(1, round(self.seconds))


@dataclass
class Tool:
    """A load generator."""
    program: str
    needs: str  # what to install where it is missing
    protocol: str
    command: Callable[[Work], list]
    read: Callable[[str, Work], dict]
    server: str | None = None  # where it cannot do without its own
    counts: bool = False  # whether it can be asked for a number of requests
    environment: dict = field(default_factory=dict)
    uncounted: str | None = None  # why valgrind does not run it
    says: str = ""  # of its work, where it differs

    def path(self):
        """Where it is; None if it is not here."""
        return shutil.which(self.program)


def number(pattern, text):
    """The number after a pattern; an error names what was not found."""
    found = re.search(pattern, text)
    if found is None:
        last = text.strip().splitlines()[-1:] or ["nothing"]
        raise RuntimeError(f"no {pattern!r} in its output: {last[0]}")
    return float(found[1])


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def wrong(text, *patterns):
    """Raises if it reported failures."""
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            raise RuntimeError(found[0].strip())


def microseconds(text):
    """A time with its unit, as wrk writes it."""
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(value) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}[unit]


def result(requests, rate, p50=None, p99=None, **more):
    return {"requests": int(requests), "rate_per_s": rate, "p50_us": p50, "p99_us": p99, **more}


# throng and the plain generators.

def throng_command(engine):
    def command(work):
        much = (["--requests", str(work.requests)] if work.requests
                else ["--duration", f"{work.seconds}s"])
        target = work.url if work.protocol.startswith("http") else f"127.0.0.1:{work.ports[0]}"
        size = {"echo": ["--size", str(ECHO_BYTES)], "upload": ["--size", str(UPLOAD_BYTES)],
                "http": [], "http2": ["--streams", str(work.streams)]}[work.protocol]
        return [work.throng, "load", target, "--protocol", work.protocol, *size, "--threads", "1",
                "--cpus", "1", *engine, "-c", str(work.clients), *much, "--json"]
    return command


def read_throng(text, _):
    printed = json.loads(text)
    if printed["errors"] or printed["served"] != printed["clients"]:
        raise RuntimeError(f"{printed['served']} of {printed['clients']} served, errors: {printed['errors']}")
    window, times = printed["window"], printed["service_time"] or {}
    return result(printed["verified"], window["replies_per_s"], times.get("p50_us"),
                  times.get("p99_us"), bytes_per_s=window["bytes_sent"] / window["duration_s"])


def c_command(work):
    much = ["-n", str(work.requests)] if work.requests else ["-d", str(work.seconds)]
    return [f"{HERE}/c/load-epoll", str(work.ports[0]), "-p", work.protocol,
            "-c", str(work.clients), *much]


def c_io_uring_command(work):
    return [f"{HERE}/../peers/c/load-io-uring", str(work.ports[0]), "-c", str(work.clients),
            "-d", f"{work.seconds}s"]


def read_c_io_uring(text, _):
    printed = last_json(text)
    if printed["errors"]:
        raise RuntimeError(f"errors: {printed['errors']}")
    return result(printed["verified"], printed["window"]["replies_per_s"])


def c_http2_command(work):
    much = ["-n", str(work.requests)] if work.requests else ["-d", str(work.seconds)]
    return [f"{HERE}/c/load-http2", str(work.ports[0]), "-c", str(work.clients),
            "-m", str(work.streams), *much]


# HTTP.

def wrk_command(*more):
    def command(work):
        return [*more[:1], "-t1", f"-c{work.clients}", f"-d{work.whole_seconds}s", *more[1:],
                work.url]
    return command


def read_wrk(text, _):
    wrong(text, r"Non-2xx.*", r"Socket errors.*")
    times = [re.search(rf"\n +{share}(?:\.000)?% +(\S+)", text) for share in (50, 99)]
    return result(number(r"(\d+) requests in", text), number(r"Requests/sec: +([\d.]+)", text),
                  *(microseconds(time[1]) if time else None for time in times))


def ab_command(work):
    # Before -n, -t would set it to 50,000; memory for as many times is taken at once.
    much = (["-n", str(work.requests)] if work.requests
            else ["-t", str(work.whole_seconds), "-n", str(work.whole_seconds * 300_000)])
    return ["ab", "-q", "-k", "-c", str(work.clients), *much, work.url]


def read_ab(text, _):
    requests = number(r"Complete requests: +(\d+)", text)
    wrong(text, r"Failed requests: +[1-9].*", r"Non-2xx.*")
    if number(r"Keep-Alive requests: +(\d+)", text) != requests:
        raise RuntimeError("not all connections were kept alive")
    return result(requests, number(r"Requests per second: +([\d.]+)", text),
                  *(number(rf"\n +{share}% +(\d+)", text) * 1e3 for share in (50, 99)))


def h2load_command(work):
    much = (["-n", str(work.requests)] if work.requests
            else ["-D", str(work.whole_seconds), "--warm-up-time=0"])
    how = ["--h1"] if work.protocol == "http" else [f"-m{work.streams}"]
    return ["h2load", *how, "-t1", f"-c{work.clients}", *much, work.url]


def read_h2load(text, _):
    wrong(text, r"[1-9]\d* (failed|errored|timeout)", r"[1-9]\d* [345]xx")
    return result(number(r"(\d+) succeeded", text), number(r", ([\d.]+) req/s", text))


def oha_command(work):
    much = ["-n", str(work.requests)] if work.requests else ["-z", f"{work.whole_seconds}s"]
    return ["oha", "--no-tui", "--output-format", "json", "-c", str(work.clients), *much, work.url]


def read_oha(text, _):
    printed = json.loads(text)
    bad = {what: count for what, count in printed["errorDistribution"].items()
           if what != "aborted due to deadline"}
    if bad or set(printed["statusCodeDistribution"]) != {"200"}:
        raise RuntimeError(f"errors: {bad or printed['statusCodeDistribution']}")
    times = printed["latencyPercentiles"]
    return result(printed["statusCodeDistribution"]["200"], printed["summary"]["requestsPerSec"],
                  times["p50"] * 1e6, times["p99"] * 1e6)


def bombardier_command(work):
    much = ["-n", str(work.requests)] if work.requests else ["-d", f"{work.seconds}s"]
    return ["bombardier", "-c", str(work.clients), *much, "-l", "-o", "json", "-p", "r", work.url]


def read_bombardier(text, _):
    printed = last_json(text)["result"]
    if any(printed[kind] for kind in ("req1xx", "req3xx", "req4xx", "req5xx", "others")):
        raise RuntimeError("not all replies were granted")
    times = printed["latency"]["percentiles"]
    return result(printed["req2xx"], printed["req2xx"] / printed["timeTakenSeconds"], times["50"],
                  times["99"])


def hey_command(work):
    much = ["-n", str(work.requests)] if work.requests else ["-z", f"{work.seconds}s"]
    return ["hey", *much, "-c", str(work.clients), "-cpus", "1", work.url]


def read_hey(text, _):
    _, _, codes = text.partition("Status code distribution:")
    wrong(codes, r"\[[1345]\d\d\].*")
    # At the end of a timed run it cuts off what is under way.
    for line in codes.partition("Error distribution:")[2].splitlines():
        if line.strip() and "deadline" not in line and "cancel" not in line:
            raise RuntimeError(line.strip())
    return result(number(r"\[200\]\s+(\d+) responses", codes),
                  number(r"Requests/sec:\s+([\d.]+)", text),
                  *(number(rf"\n +{share}%+ in ([\d.]+) secs", text) * 1e6 for share in (50, 99)))


# Echo, or the closest equivalent.

def echo_bench_command(work):
    return ["echo_bench", "-a", f"127.0.0.1:{work.ports[0]}", "-l", str(ECHO_BYTES),
            "-c", str(work.clients), "-t", str(work.whole_seconds)]


def read_echo_bench(text, work):
    wrong(text, r"(Read|Write) error.*")
    replies = number(r"Responses: (\d+)", text)
    return result(replies, replies / work.whole_seconds)


def neper_command(work):
    return ["tcp_rr", "-c", "-H", "127.0.0.1", "-C", str(work.ports[0]), "-P", str(work.ports[1]),
            "-F", str(work.clients), "-T", "1", "-l", str(work.whole_seconds),
            "-Q", str(ECHO_BYTES), "-R", str(ECHO_BYTES), "--nolog", "-p", "50,99"]


def read_neper(text, _):
    return result(number(r"num_transactions=(\d+)", text), number(r"\nthroughput=([\d.]+)", text),
                  *(number(rf"latency_p{share}=([\d.]+)", text) * 1e6 for share in (50, 99)))


# It takes only a number of requests; about as many as fit into the time.
def redis_requests(work):
    return work.requests or round(work.seconds * 60_000)


def redis_benchmark_command(work):
    return ["redis-benchmark", "-p", str(work.ports[0]), "-c", str(work.clients),
            "-n", str(redis_requests(work)), "--csv", "ECHO", "x" * ECHO_BYTES]


def read_redis_benchmark(text, work):
    wrong(text, r"(?i)error.*")
    last = text.strip().splitlines()[-1].rsplit(",", 7)
    rate, p50, p99 = (float(last[place].strip('"')) for place in (1, 4, 6))
    return result(redis_requests(work), rate, p50 * 1e3, p99 * 1e3)


def memtier_command(work):
    much = ([f"--requests={work.requests // work.clients}"] if work.requests
            else [f"--test-time={work.whole_seconds}"])
    return ["memtier_benchmark", "-s", "127.0.0.1", "-p", str(work.ports[0]), "-t", "1",
            "-c", str(work.clients), *much, "--hide-histogram", "--print-percentiles=50,99",
            f"--command=ECHO {'x' * ECHO_BYTES}", f"--json-out-file={work.directory}/memtier"]


def read_memtier(_, work):
    with open(f"{work.directory}/memtier", encoding="utf-8") as file:
        printed = json.load(file)["ALL STATS"]["Echos"]
    if printed["Connection Errors"]:
        raise RuntimeError(f"{printed['Connection Errors']} connections failed")
    times = printed["Percentile Latencies"]
    return result(printed["Count"], printed["Ops/sec"], times["p50.00"] * 1e3, times["p99.00"] * 1e3)


C = "gcc and make; built by this script"
GO = {"environment": {"GOMAXPROCS": "1"}, "uncounted": "valgrind does not run Go"}
TOOLS = {
    "throng": Tool("throng", "cargo", "any", throng_command([]), read_throng, counts=True),
    "throng/io-uring": Tool("throng", "cargo", "any", throng_command(["--engine", "io-uring"]),
                            read_throng, counts=True),
    "c": Tool(f"{HERE}/c/load-epoll", C, "echo http", c_command, lambda text, _: last_json(text),
              counts=True),
    "c/http2": Tool(f"{HERE}/c/load-http2", C, "http2", c_http2_command,
                    lambda text, _: last_json(text), counts=True),
    "c/io-uring": Tool(f"{HERE}/../peers/c/load-io-uring", f"{C}; liburing-dev", "echo",
                       c_io_uring_command, read_c_io_uring, says="records no times"),
    "wrk": Tool("wrk", "Debian: wrk", "http", wrk_command("wrk", "--latency"), read_wrk),
    "wrk2": Tool("wrk2", "from source: github.com/giltene/wrk2, make, its `wrk` as `wrk2`", "http",
                 wrk_command("wrk2", "-R1000000", "-U"), read_wrk,
                 says="asked for more than it can do; its times count from when each was due"),
    "ab": Tool("ab", "Debian: apache2-utils", "http", ab_command, read_ab, counts=True,
               says="HTTP/1.0; whole milliseconds"),
    "h2load": Tool("h2load", "Debian: nghttp2-client", "http http2", h2load_command, read_h2load,
                   counts=True, says="has no percentiles"),
    "oha": Tool("oha", "cargo install --locked oha", "http", oha_command, read_oha, counts=True,
                environment={"TOKIO_WORKER_THREADS": "1"}),
    "bombardier": Tool("bombardier", "from source: github.com/codesenberg/bombardier, go build",
                       "http", bombardier_command, read_bombardier, counts=True, **GO),
    "hey": Tool("hey", "go install github.com/rakyll/hey@latest", "http", hey_command, read_hey,
                counts=True, **GO),
    "neper": Tool("tcp_rr", "from source: github.com/google/neper, make tcp_rr", "echo",
                  neper_command, read_neper, server="neper",
                  says="its own server; replies are not checked"),
    "rust_echo_bench": Tool("echo_bench", "from source: github.com/haraldh/rust_echo_bench", "echo",
                            echo_bench_command, read_echo_bench,
                            says="a thread a client; replies are not checked; records no times"),
    "redis-benchmark": Tool("redis-benchmark", "Debian: redis-tools and redis-server", "echo",
                            redis_benchmark_command, read_redis_benchmark, server="redis",
                            counts=True, says="ECHO to redis; replies are not checked"),
    "memtier": Tool("memtier_benchmark", "from source: github.com/RedisLabs/memtier_benchmark, "
                    "with autoconf, automake, libevent-dev, libssl-dev", "echo", memtier_command,
                    read_memtier, server="redis", counts=True,
                    uncounted="its work of each second outweighs that of requests under valgrind",
                    says="ECHO to redis; replies are not checked"),
}
