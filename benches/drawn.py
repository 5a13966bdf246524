#!/usr/bin/env python3
"""Compares what a report draws with its record, independently of throng's own code.

    benches/drawn.py RECORD [PAGE [FEWEST]]     PAGE is RECORD/report.html unless it is given

Values are computed again from trials.jsonl and compared with the tips of points, and with their places between the marks
of their axes. The exit code is 1 if a value is wrong, or if too few were found. Standard library only."""

import base64
import gzip
import html
import json
import math
import pathlib
import re
import statistics
import struct
import sys
import zlib

# Coordinates in pictures have tenths of a pixel, for points and for marks.
PIXEL = 0.16
FEWEST = 50
# How far the text of a mark is below it.
TEXT_DROP = 0.35 * 11


def trials(record):
    """The timed trials that did not fail."""
    packed = record / "trials.jsonl.gz"
    opened = gzip.open(packed, "rt") if packed.exists() else open(record / "trials.jsonl")
    with opened as lines:
        for line in lines:
            trial = json.loads(line)
            if trial["purpose"] == "timed" and trial.get("load") and not trial.get("failure"):
                yield trial


class Histogram:
    """An HdrHistogram (V2, deflated)."""

    def __init__(self):
        self.counts, self.digits, self.low = {}, None, None

    def add(self, text):
        packed = base64.b64decode(text)
        cookie, length = struct.unpack(">II", packed[:8])
        if cookie & ~0xF0 == 0x1C849304:
            packed = zlib.decompress(packed[8:8 + length])
            cookie = struct.unpack(">I", packed[:4])[0]
        assert cookie & ~0xF0 == 0x1C849303, hex(cookie)
        length, _, self.digits, self.low, _, _ = struct.unpack(">IIIQQd", packed[4:40])
        place, index, payload = 0, 0, packed[40:40 + length]
        while place < len(payload):
            number, shift = 0, 0
            for nth in range(9):
                byte = payload[place]
                place += 1
                number |= (byte if nth == 8 else byte & 0x7F) << shift
                shift += 7
                if nth == 8 or not byte & 0x80:
                    break
            number = (number >> 1) ^ -(number & 1)
            if number < 0:
                index -= number
            else:
                if number:
                    self.counts[index] = self.counts.get(index, 0) + number
                index += 1

    def at(self, share):
        """The highest value of the bucket in which a share of all values is reached."""
        half = 2 ** (math.ceil(math.log2(2 * 10 ** self.digits)) - 1)
        unit = int(math.log2(max(self.low, 1)))
        wanted = max(1, math.ceil(share * sum(self.counts.values())))
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                bucket, sub = index // half - 1, index % half + half
                if bucket < 0:
                    bucket, sub = 0, sub - half
                return (sub << (bucket + unit)) + (1 << (bucket + unit)) - 1
        return math.nan


def worked_out(record):
    """Figure -> (server, clients) -> value."""
    groups = {}
    for trial in trials(record):
        groups.setdefault((trial["server"], trial["clients"]), []).append(trial)
    found = {name: {} for name in ("throughput", "cpu-per-request", "latency-p99", "overview")}
    for key, own in groups.items():
        # Invalid trials count only where no trial is valid.
        own = [trial for trial in own if not any(one["severity"] == "invalid" for one in trial.get("findings", []))] or own
        rates = [trial["load"]["window"]["replies_per_s"] for trial in own]
        found["throughput"][key] = statistics.median(rates)
        cpu = []
        for trial in own:
            used = ((trial.get("server_side") or {}).get("metrics") or {}).get("cpu_ms")
            replies = trial["load"]["window"]["replies"]
            if used and replies:
                cpu.append(1000 * used / replies)
        if cpu:
            found["cpu-per-request"][key] = statistics.median(cpu)
            found["overview"][key] = statistics.median(1e6 / one for one in cpu)
        histogram = Histogram()
        for trial in own:
            if trial["load"].get("service_time"):
                histogram.add(trial["load"]["service_time"]["histogram"])
        if histogram.counts:
            found["latency-p99"][key] = histogram.at(0.99) / 1e6
    return found


def number(text):
    """'12,300', '20k', '3.5M'."""
    factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1)
    return float(text.rstrip("kMG").replace(",", "")) * factor


def attributes(element):
    return {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', element)}


def scale(svg, upright):
    """From a place to a value, by the marks of the axis."""
    marks = []
    for element, text in re.findall(r"<text([^>]*)>([^<]*)</text>", svg):
        known = attributes(element)
        anchor = known.get("text-anchor")
        if "iq" in known.get("class", "") and anchor == ("end" if upright else "middle") and re.fullmatch(r"-?[\d.,]+[kMG]?", text):
            place = float(known["y"]) - TEXT_DROP if upright else float(known["x"])
            marks.append((place, number(text)))
    marks.sort()
    if len(marks) < 2 or min(value for _, value in marks) <= 0:
        return None
    (from_place, from_value), (to_place, to_value) = marks[0], marks[-1]
    power = math.log(to_value / from_value) / (to_place - from_place)
    return lambda place: from_value * math.exp(power * (place - from_place)), abs(power)


def same_digits(printed, value):
    """Whether three digits, as printed, are those of a value."""
    return abs(printed - value) <= 0.0051 * abs(value)


def check(page, found):
    """What is wrong, and how much was compared."""
    wrong, compared = [], 0
    largest = max((clients for _, clients in found["throughput"]), default=0)
    for figure, values in found.items():
        matched = re.search(rf'<figure[^>]*id="figure-{figure}".*?</figure>', page, re.S)
        if not matched:
            continue
        drawn = matched.group(0)
        shared = "".join(re.findall(r"<defs>.*?</defs>", drawn, re.S))
        pictures = re.findall(r'<svg class="p".*?</svg>', drawn, re.S)
        for svg in pictures[:1] if figure == "overview" else pictures:
            rows = figure == "overview" or "clients:" not in svg
            to_value = scale(shared + svg, upright=not rows)
            for element in re.findall(r"<path [^>]*data-at=[^>]*data-t=[^>]*>", svg):
                known = attributes(element)
                tip = known["data-t"]
                matched = re.match(r"(.*), ([\d,]+) clients?: ([\d.,]+)", tip) or re.match(r"(.*)(): ([\d.,]+)", tip)
                name, clients, printed = matched.groups()
                key = (name, int(clients.replace(",", "")) if clients else largest)
                if key not in values:
                    wrong.append(f"{figure}: {tip}: the record has no such value")
                    continue
                value = values[key]
                if not same_digits(number(printed), value):
                    wrong.append(f"{figure}: {tip}: worked out, it is {value:.6g}")
                if to_value:
                    place = float(known["data-at"].split()[0 if rows else 1])
                    lies_at, power = to_value[0](place), to_value[1]
                    if abs(math.log(lies_at / value)) > PIXEL * power + 0.0005:
                        wrong.append(f"{figure}: {tip}: lies at {lies_at:.6g}, and is {value:.6g}")
                compared += 1
    return wrong, compared


def main():
    record = pathlib.Path(sys.argv[1])
    page = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else record / "report.html"
    wrong, compared = check(page.read_text(), worked_out(record))
    for one in wrong:
        print(one)
    print(f"{compared} points compared, {len(wrong)} wrong")
    fewest = int(sys.argv[3]) if len(sys.argv) > 3 else FEWEST
    return 1 if wrong or compared < fewest else 0


if __name__ == "__main__":
    sys.exit(main())
