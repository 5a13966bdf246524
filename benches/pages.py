#!/usr/bin/env python3
"""Measures a page in headless Chromium, and takes pictures of it.

    benches/pages.py report.html                      size, time to draw, time of a toggle, of a hover, of a print
    benches/pages.py report.html --pictures DIRECTORY  the same, with screenshots: desktop, dark, phone, whole, print

Ends with 1 where a page loads anything, has something refused, or does not do what it should. Each time is the median of
five loads; those of the CPU count the page's own thread. Needs Chromium; without it says so and ends with 0. Standard library only."""

import argparse
import base64
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

LOADS = 5
# Pictures of a whole page come in pieces of this height.
SLICE = 1500

# Resolves when what was changed is on the screen.
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"

TOGGLE = f"""(async () => {{
  const button = document.querySelector(".key button[data-server]");
  if (!button) return null;
  const from = performance.now();
  button.click();
  return await {FRAMES} - from;
}})()"""

HOVER = f"""(async () => {{
  const picture = document.querySelector("svg.p");
  if (!picture) return null;
  const box = picture.getBoundingClientRect();
  const from = performance.now();
  const where = {{bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}};
  picture.dispatchEvent(new PointerEvent("pointerover", where));
  picture.dispatchEvent(new PointerEvent("pointermove", where));
  return await {FRAMES} - from;
}})()"""

DRAWN = f"""(async () => {{
  await {FRAMES};
  const [navigation] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [paint?.startTime ?? null, navigation.loadEventEnd, performance.now(), performance.getEntriesByType("resource").length];
}})()"""

ERRORS = """window.__refused = []; addEventListener("securitypolicyviolation", e => __refused.push(e.violatedDirective));
addEventListener("error", e => __refused.push(e.message));"""


# What a page must do, each with what it is. All begin with a page as it was opened.
BEHAVES = {
    "a point says its value": """
        const svg = document.querySelector("svg.p[tabindex]");
        svg.scrollIntoView({block: "center"});
        const use = svg.querySelector("path[data-at]");
        const box = use.getBoundingClientRect();
        const where = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
        use.dispatchEvent(new PointerEvent("pointermove", where));
        const tip = document.getElementById("tip");
        return !tip.hidden && tip.textContent === use.dataset.t;""",
    "arrow keys go from point to point": """
        const svg = document.querySelector("svg.p[tabindex]");
        const tip = document.getElementById("tip");
        const press = () => {
            svg.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
            return tip.textContent;
        };
        const first = press();
        return !tip.hidden && first !== "" && press() !== first;""",
    "a server is hidden everywhere, is shown again, and the address says so": """
        const button = document.querySelector(".key button[data-server]");
        const place = button.dataset.server.split(" ")[0];
        const part = button.closest("[data-scope]");
        const drawn = [...part.querySelectorAll(`.pictures [data-s="${place}"]`)].filter(one => one.closest("[data-scope]") === part);
        const hidden = () => drawn.every(element => getComputedStyle(element).display === "none");
        button.click();
        const [was, hash] = [hidden(), location.hash];
        button.click();
        return drawn.length > 0 && was && !hidden() && hash.includes("hide") && !location.hash.includes("hide");""",
    "a double click shows a server alone": """
        const key = document.querySelector(".key:has(button[data-server])");
        const buttons = [...key.querySelectorAll("button[data-server]")];
        buttons[1].click();
        buttons[1].dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
        const shown = buttons.filter(button => button.getAttribute("aria-pressed") === "true");
        document.querySelector(".key .all").click();
        return shown.length === 1 && shown[0] === buttons[1];""",
    "an address hides what it says": """
        const button = document.querySelector(".key button[data-server]");
        const part = button.closest("[data-scope]").id;
        location.hash = `#~hide${part && `:${encodeURIComponent(part)}`}=${encodeURIComponent(button.textContent)}`;
        await new Promise(done => setTimeout(done, 200));
        const hidden = button.getAttribute("aria-pressed") === "false";
        document.querySelector(".key .all").click();
        return hidden;""",
    "a table that is scrolled sideways keeps its first column": """
        const scrolled = document.querySelector(".scroll");
        scrolled.style.width = "300px";
        const name = scrolled.querySelector("tbody th[scope=row]");
        const value = scrolled.querySelector("tbody td:last-child");
        const [before, first] = [value.getBoundingClientRect().x, name.getBoundingClientRect().x];
        scrolled.scrollLeft = 120;
        return before - value.getBoundingClientRect().x === 120 && Math.abs(name.getBoundingClientRect().x - first) < 1;""",
    "a table is sorted by a heading, and back": """
        const table = [...document.querySelectorAll("table")].find(one => one.tBodies[0].rows.length > 2);
        const names = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent).join();
        const before = names();
        const heads = [...table.tHead.rows[0].cells];
        const orders = new Set();
        for (const head of heads.slice(0, 4)) {
            for (let press = 0; press < 3; press++) {
                head.querySelector("button").click();
                orders.add(names());
            }
        }
        return orders.size > 1 && names() === before;""",
}


class Chromium:
    """Chromium, asked over a pair of pipes."""

    def __init__(self, program, directory):
        ours, theirs = os.pipe(), os.pipe()
        keep = {3: ours[0], 4: theirs[1]}

        def place():
            # Both out of the way first, so that neither lands on the other.
            moved = {to: os.dup(fd) + 0 for to, fd in keep.items()}
            for to, fd in moved.items():
                os.dup2(fd, to)

        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={directory}", "about:blank",
        ]
        self.process = subprocess.Popen(
            command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.write, self.read = ours[1], theirs[0]
        self.numbers, self.rest = itertools.count(1), b""
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network"):
            self.ask(f"{part}.enable")
        # Of the thread that draws, so that what else runs here does not count.
        self.ask("Performance.enable", timeDomain="threadTicks")
        self.ask("Page.addScriptToEvaluateOnNewDocument", source=ERRORS)

    def ask(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def next(self):
        while b"\0" not in self.rest:
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError("Chromium is gone")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def evaluate(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "failed"))
        return result["result"].get("value")

    def cpu_ms(self):
        """What the page's thread has used until now."""
        metrics = self.ask("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def timed(self, expression):
        """What it results in, and the CPU time that it took."""
        before = self.cpu_ms()
        result = self.evaluate(expression)
        return result, self.cpu_ms() - before

    def open(self, page, width=1400, height=900, dark=False, mobile=False):
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, mobile=mobile,
                 deviceScaleFactor=2 if mobile else 1)
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=page)
        while self.evaluate("location.href !== 'about:blank' && document.readyState") != "complete":
            pass

    def end(self):
        os.close(self.write)
        self.process.kill()
        self.process.wait()


def shoot(browser, page, directory):
    """Pictures of a page as people see it."""
    def shot(name, **clip):
        data = browser.ask("Page.captureScreenshot", format="png", **clip)["data"]
        (directory / f"{name}.png").write_bytes(base64.b64decode(data))

    def whole(name):
        size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
        for number, top in enumerate(range(0, int(size["height"]), SLICE)):
            clip = {"x": 0, "y": top, "width": size["width"], "height": min(SLICE, size["height"] - top), "scale": 1}
            shot(f"{name}-{number}", captureBeyondViewport=True, clip=clip)

    for name, how in {
        "desktop": {}, "dark": {"dark": True},
        "phone": {"width": 390, "height": 844, "mobile": True},
        "phone-dark": {"width": 390, "height": 844, "mobile": True, "dark": True},
    }.items():
        browser.open(page, **how)
        browser.evaluate(FRAMES)
        shot(name)
    for name, how in {"whole": {}, "whole-phone": {"width": 390, "height": 844, "mobile": False}}.items():
        browser.open(page, **how)
        browser.evaluate("document.querySelectorAll('figure, section').forEach(f => f.style.contentVisibility = 'visible')")
        browser.evaluate(FRAMES)
        whole(name)
    browser.open(page, width=1040)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    browser.evaluate(FRAMES)
    whole("paper")
    browser.ask("Emulation.setEmulatedMedia", media="")


def pdf(browser, page):
    browser.open(page)
    return base64.b64decode(browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])


def measure(browser, page):
    """Medians over several loads."""
    rows = []
    for _ in range(LOADS):
        browser.open(page)
        paint, load, drawn, requests = browser.evaluate(DRAWN)
        used = browser.cpu_ms()
        browser.evaluate(f"document.querySelector('.key')?.scrollIntoView(); {FRAMES}")
        toggles = [browser.timed(TOGGLE) for _ in range(4)]
        hovers = [browser.timed(HOVER) for _ in range(3)]
        rows.append({
            "first_paint_ms": paint, "loaded_ms": load, "drawn_ms": drawn, "drawn_cpu_ms": used, "requests": requests,
            "toggle_ms": max((one for one, _ in toggles if one), default=None),
            "toggle_cpu_ms": max(cpu for _, cpu in toggles),
            "hover_ms": max((one for one, _ in hovers if one), default=None),
            "hover_cpu_ms": max(cpu for _, cpu in hovers),
        })
    found = {}
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        found[name] = round(statistics.median(values), 1) if values else None
    found["refused"] = browser.evaluate("window.__refused")
    found["does_not"] = [what for what, script in BEHAVES.items() if not behaves(browser, page, script)]
    return found


def behaves(browser, page, script):
    browser.open(page)
    if not browser.evaluate("document.querySelectorAll('.key button[data-server]').length > 1"):
        return True
    return browser.evaluate(f"(async () => {{ {script} }})()")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    given = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        print("there is no Chromium here, so nothing is measured")
        return 0
    bad = 0
    for page in given.pages:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = Chromium(program, profile)
            try:
                url = page.resolve().as_uri()
                found = {"page": str(page), "bytes": page.stat().st_size, **measure(browser, url)}
                printed = pdf(browser, url)
                found["print_bytes"] = len(printed)
                if given.pictures:
                    given.pictures.mkdir(parents=True, exist_ok=True)
                    (given.pictures / "print.pdf").write_bytes(printed)
                    shoot(browser, url, given.pictures)
            finally:
                browser.end()
        print(json.dumps(found, indent=1))
        bad += bool(found["refused"] or found["requests"] or found["does_not"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
