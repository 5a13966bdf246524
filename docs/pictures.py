#!/usr/bin/env python3
"""Makes the pictures of the README from a run.

    docs/pictures.py [PROGRAM]         PROGRAM is target/release/throng unless it is given

On a machine with nothing else to do: runs COMMAND below on a terminal, writes what the terminal showed as docs/terminal.svg, which moves, and the first screen of the
report that the run left as docs/report.png. Then, from the reference run of all models, docs/report-numbered.png with the numbers that
docs/reading-a-report.md explains.

    docs/pictures.py --numbered [PROGRAM]    makes only the last one, on any machine

Needs Chromium for the pictures of reports. Standard library only."""

import fcntl
import html
import importlib.util
import os
import pathlib
import pty
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

DOCS = pathlib.Path(__file__).resolve().parent
COMMAND = ["throng", "compare", "select --fd-setsize 20000", "poll", "epoll", "-n", "select",
           "--clients", "10000", "--rate", "2000"]
REFERENCE = "results/2026-11-22-vm/models"
COLUMNS, ROWS = 100, 32

# The film: seconds of the answer before it begins, of the run, of the answer at the end, and between two pictures at least.
BEFORE, RUN, AFTER, APART = 4.0, 4.0, 6.0, 0.15

# A cell of the picture, and colours of a terminal.
WIDE, TALL, SIZE, MARGIN = 9.0, 19.0, 15, 16
GROUND, INK = "#0d1117", "#e6edf3"
COLOURS = {30: "#484f58", 31: "#ff7b72", 32: "#3fb950", 33: "#d29922", 34: "#58a6ff", 35: "#bc8cff", 36: "#39c5cf", 37: "#b1bac4"}
QUIET = "#8b949e"


class Terminal:
    """As much of a terminal as throng uses."""

    def __init__(self):
        self.rows = [[] for _ in range(ROWS)]
        self.row = self.column = 0
        self.style = ("", False, False)
        self.rest = ""

    def write(self, text):
        text = self.rest + text
        self.rest = ""
        place = 0
        while place < len(text):
            c = text[place]
            if c == "\x1b":
                end = place + 2
                while end < len(text) and not text[end].isalpha():
                    end += 1
                if end >= len(text):
                    self.rest = text[place:]
                    return
                self.obey(text[place + 2:end], text[end])
                place = end
            elif c == "\r":
                self.column = 0
            elif c == "\n":
                self.down()
            elif c >= " ":
                self.put(c)
            place += 1

    def down(self):
        if self.row == ROWS - 1:
            self.rows = self.rows[1:] + [[]]
        else:
            self.row += 1

    def put(self, c):
        if self.column == COLUMNS:
            self.column = 0
            self.down()
        row = self.rows[self.row]
        row.extend([(" ", ("", False, False))] * (self.column + 1 - len(row)))
        row[self.column] = (c, self.style)
        self.column += 1

    def obey(self, numbers, what):
        count = int(numbers) if numbers.isdigit() else 1
        if what == "A":
            self.row = max(self.row - count, 0)
        elif what == "B":
            self.row = min(self.row + count, ROWS - 1)
        elif what == "G":
            self.column = min(count, COLUMNS) - 1
        elif what == "J":
            self.rows[self.row] = self.rows[self.row][:self.column]
            for row in range(self.row + 1, ROWS):
                self.rows[row] = []
        elif what == "K":
            self.rows[self.row] = []
        elif what == "m":
            for number in (int(one or 0) for one in numbers.split(";")):
                colour, bold, dim = self.style
                if number == 0:
                    self.style = ("", False, False)
                elif number == 1:
                    self.style = (colour, True, dim)
                elif number == 2:
                    self.style = (colour, bold, True)
                elif number == 22:
                    self.style = (colour, False, False)
                elif number == 39:
                    self.style = ("", bold, dim)
                elif number % 60 in COLOURS:
                    self.style = (COLOURS[number % 60], bold, dim)
        elif what not in "hl":
            raise ValueError(f"unknown sequence: {numbers}{what}")

    def seen(self):
        blank = (" ", ("", False, False))
        lines = []
        for row in self.rows:
            row = list(row)
            while row and row[-1] == blank:
                row.pop()
            lines.append(tuple(row))
        return tuple(lines)


def recorded(program, directory):
    """(seconds, screen) whenever the screen was another."""
    words = [str(program), *COMMAND[1:]]
    terminal, films = Terminal(), []
    line = "$ " + shlex.join(COMMAND)
    for length in (2, *range(len(line) // 6, len(line), len(line) // 6), len(line)):
        for row in range((length - 1) // COLUMNS + 1):
            part = line[:length][row * COLUMNS:(row + 1) * COLUMNS]
            terminal.rows[row] = [(c, ("", True, False)) for c in part]
        films.append((len(films) * 0.08, terminal.seen()))
    terminal.row, terminal.column = (len(line) - 1) // COLUMNS + 1, 0
    typed = films[-1][0] + 0.2
    began = time.monotonic()
    process, master = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(directory)
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("NO_COLOR", None)
        os.execv(words[0], words)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    while True:
        select.select([master], [], [], 1)
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        terminal.write(data.decode(errors="replace"))
        screen = terminal.seen()
        if screen != films[-1][1]:
            films.append((typed + time.monotonic() - began, screen))
    _, status = os.waitpid(process, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        last = ["".join(c for c, _ in line) for line in films[-1][1]]
        sys.exit("\n".join([*last, "nothing is written of this; is the machine quiet?"]))
    return typed, films


def shortened(typed, films):
    """The same in no more than its time: what runs goes faster, what is typed does not."""
    end = films[-1][0]
    pace = max((end - typed) / (RUN - typed), 1.0)
    kept = []
    for at, screen in films:
        at = at if at <= typed else typed + (at - typed) / pace
        if kept and at > typed and at + BEFORE - kept[-1][0] < APART and screen != films[-1][1]:
            continue
        kept.append((at + BEFORE, screen))
    return kept, kept[-1][0] + AFTER, pace


BLOCKS = {"█": (0, 0, 1, 1), "━": (0, 0.44, 1, 0.13), "─": (0, 0.47, 1, 0.06)}
BLOCKS |= {c: (0, 0, (8 - place) / 8, 1) for place, c in enumerate("▉▊▋▌▍▎▏", 1)}
BLOCKS |= {c: (0, 1 - place / 8, 1, place / 8) for place, c in enumerate("▁▂▃▄▅▆▇", 1)}


def short(number):
    return f"{number:.1f}".rstrip("0").rstrip(".")


def drawn(line, top=MARGIN):
    """The first row as SVG: text, and bars as boxes, which look alike in every font."""
    parts = []
    place = 0
    while place < len(line):
        style, start = line[place][1], place
        is_block = line[place][0] in BLOCKS
        same = line[place][0]
        while place < len(line) and line[place][1] == style and (
            line[place][0] == same if is_block else line[place][0] not in BLOCKS
        ):
            place += 1
        text = "".join(c for c, _ in line[start:place])
        colour, bold, dim = style
        fill = colour or (QUIET if dim else INK)
        if is_block:
            left, above, wide, tall = BLOCKS[same]
            # Boxes of a whole cell meet.
            width = (place - start) * WIDE if wide == 1 else wide * WIDE
            parts.append(
                f'<path fill="{fill}" d="M{short(MARGIN + (start + left) * WIDE)} {short(top + above * TALL)}'
                f'h{short(width)}v{short(tall * TALL)}h-{short(width)}z"/>'
            )
            if wide != 1 and place - start > 1:
                raise ValueError("parts of a bar beside each other")
        elif text.strip():
            lead = len(text) - len(text.lstrip())
            text = text.strip()
            weight = ' font-weight="700"' if bold else ""
            fill = "" if fill == INK else f' fill="{fill}"'
            parts.append(
                f'<text x="{short(MARGIN + (start + lead) * WIDE)}" y="{short(top + 0.76 * TALL)}"'
                f' textLength="{short(len(text) * WIDE)}"{fill}{weight}>{html.escape(text, quote=False)}</text>'
            )
    return "".join(parts)


def film(films, length, alternative):
    """An SVG in which each screen is there for its time; lines are written once. It begins with the last screen, which is also
    there where nothing moves."""
    width, height = short(COLUMNS * WIDE + 2 * MARGIN), short(ROWS * TALL + 2 * MARGIN)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-monospace,\'SF Mono\',\'Cascadia Mono\',\'DejaVu Sans Mono\',Menlo,Consolas,monospace" '
        f'font-size="{SIZE}" fill="{INK}" role="img">',
        f"<title>{html.escape(alternative)}</title>",
        "<style>text{white-space:pre}@media (prefers-reduced-motion:reduce){.f{display:none!important}.l{display:inline!important}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
    ]
    places = {}
    for _, screen in films:
        for line in screen:
            if line and line not in places and drawn(line):
                places[line] = f"l{len(places)}"
    out.append("<defs>" + "\n".join(f'<g id="{name}">{drawn(line)}</g>' for line, name in places.items()) + "</defs>")
    ends = [at for at, _ in films[1:]] + [length]
    for (start, screen), end in zip(films, ends):
        rows = "".join(
            f'<use href="#{places[line]}" y="{short(row * TALL)}"/>' for row, line in enumerate(screen) if line in places
        )
        is_last = end == length
        times, values = ["0"], ["inline" if is_last else "none"]
        for at, value in ((BEFORE, "none"), (start, "inline"), (end, "none")) if is_last else ((start, "inline"), (end, "none")):
            if 0 < at < length:
                times.append(f"{at / length:.4f}")
                values.append(value)
        hidden = "" if is_last else ' display="none"'
        out.append(
            f'<g class="{"l" if is_last else "f"}"{hidden}>{rows}<animate attributeName="display" calcMode="discrete" '
            f'dur="{short(length)}s" repeatCount="indefinite" keyTimes="{";".join(times)}" values="{";".join(values)}"/></g>'
        )
    return "\n".join(out) + "\n</svg>\n"


# Numbers that docs/reading-a-report.md explains, and where they stand.
NUMBERS = """(() => {
  const picture = document.querySelector('.answer figure svg.p');
  const places = [
    document.querySelector('h1'), document.querySelector('nav'), document.querySelector('.answer .lead'),
    document.querySelector('.answer .lead + p'), document.querySelector('.answer figcaption'),
    picture && picture.querySelector('text.iq:not([text-anchor])'), document.querySelector('.answer details summary'),
  ];
  places.forEach((place, index) => {
    if (!place) return;
    const box = place.getBoundingClientRect();
    const mark = document.createElement('span');
    mark.textContent = index + 1;
    Object.assign(mark.style, {
      position: 'absolute', left: Math.max(4, box.left - 29) + 'px', top: box.top + window.scrollY - 1 + 'px', width: '22px', height: '22px',
      borderRadius: '11px', background: '#b3261e', color: '#fff', font: 'bold 13px/22px sans-serif', textAlign: 'center',
    });
    document.body.append(mark);
  });
})()"""


def photographed(page, picture, is_numbered=False):
    """The first screen of a page."""
    spec = importlib.util.spec_from_file_location("pages", DOCS.parent / "benches" / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print(f"there is no Chromium here, so {picture} stays as it is")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = pages.Chromium(program, profile)
        try:
            browser.open(page.resolve().as_uri(), width=1280, height=900)
            browser.evaluate(pages.FRAMES)
            bottom = browser.evaluate("Math.ceil(document.querySelector('.answer').getBoundingClientRect().bottom) + 16")
            clip = {"x": 0, "y": 0, "width": 1280, "height": min(bottom, 900), "scale": 1}
            if is_numbered:
                browser.evaluate(NUMBERS)
                browser.evaluate(pages.FRAMES)
            data = browser.ask("Page.captureScreenshot", format="png", clip=clip)["data"]
            picture.write_bytes(pages.base64.b64decode(data))
        finally:
            browser.end()


def numbered(program):
    """The first screen of the report of the reference run, with numbers."""
    with tempfile.TemporaryDirectory() as directory:
        record = pathlib.Path(directory) / "models"
        shutil.copytree(DOCS.parent / REFERENCE, record)
        subprocess.run([program, "report", record], check=True, stdout=subprocess.DEVNULL)
        photographed(record / "report.html", DOCS / "report-numbered.png", is_numbered=True)


def main():
    is_numbered = sys.argv[1:2] == ["--numbered"]
    del sys.argv[1 : 1 + is_numbered]
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else DOCS.parent / "target" / "release" / "throng").resolve()
    if is_numbered:
        return numbered(program)
    with tempfile.TemporaryDirectory() as directory:
        typed, films = recorded(program, directory)
        [record] = pathlib.Path(directory).glob("throng-results/*")
        kept, length, pace = shortened(typed, films)
        picture = film(kept, length, f"A terminal: {shlex.join(COMMAND)}, {pace:.0f} times as fast as it ran.")
        (DOCS / "terminal.svg").write_text(picture)
        photographed(record / "report.html", DOCS / "report.png")
        print(f"{len(picture)} bytes, {len(kept)} pictures, {length:.0f} s, {pace:.1f} times as fast")
    numbered(program)


if __name__ == "__main__":
    main()
