#!/usr/bin/env python3
"""Looks at pages with axe-core in headless Chromium, as light and as dark pages, and lists what it finds.

    benches/accessibility.py throng-results/*/report.html     these pages
    benches/accessibility.py --all [PROGRAM]                  pages of every kind: reports of a run, a comparison, a limit,
                                                              a study and two runs, and every page of `throng view`

Ends with 1 where something is found. Needs Chromium, and npm to get axe-core; without them it says so and ends with 0.
--all runs small loads on loopback, about a minute."""

import contextlib
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

LIGHT_AND_DARK = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}

RUN = """
addEventListener("load", () => setTimeout(async () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const result = document.createElement("pre");
  result.id = "axe-result";
  result.textContent = JSON.stringify(found.violations.map(({impact, id, help, nodes}) =>
    ({impact, id, help, places: nodes.map(node => node.target.join(" "))})));
  document.body.append(result);
}, 1500));
"""


def chromium():
    found = map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])
    return next(filter(None, found), None)


def axe(directory):
    """The script of axe-core, from npm's registry."""
    packed = subprocess.run(["npm", "pack", "--silent", "axe-core"], cwd=directory, capture_output=True, text=True)
    if packed.returncode != 0:
        return None
    subprocess.run(["tar", "xzf", packed.stdout.split()[-1]], cwd=directory, check=True)
    return (directory / "package/axe.min.js").read_text()


def look(browser, name, text, script, options, directory):
    """What axe finds on a page."""
    # Its policy would refuse the script that looks.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    before, after = text.rsplit("</body>", 1)
    copy = directory / "page.html"
    copy.write_text(f"{before}<script>{script}</script><script>{RUN}</script></body>{after}")
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={directory / 'profile'}", "--window-size=1500,5000", "--virtual-time-budget=20000",
        "--dump-dom", *options, f"file://{copy}",
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=300)
    result = re.search(r'<pre id="axe-result">(.*?)</pre>', dumped.stdout, re.S)
    if result is None:
        sys.exit(f"{name}: axe gave no result; output of the browser: {dumped.stderr[-500:]}")
    return json.loads(html.unescape(result[1]))


@contextlib.contextmanager
def view(program, directory):
    """A running `throng view`: what gets a page of it, by its path."""
    process = subprocess.Popen([program, "view", directory], stdout=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline().split()[-1]
        address = first.split("/?")[0]
        browsing = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        # Its answer sets the cookie that the other pages ask for.
        browsing.open(first).close()

        def get(path):
            try:
                with browsing.open(address + path) as answer:
                    return answer.read().decode()
            except urllib.error.HTTPError as refused:
                if refused.code != 404:
                    raise
                # A page too.
                return refused.read().decode()

        style = get("/page.css")

        def page(path):
            # The page stands alone then, as a file.
            text = re.sub(r"<script[^>]*src=[^>]*></script>", "", get(path))
            return text.replace('<link rel="stylesheet" href="/page.css">', f"<style>{style}</style>")

        yield page, get
    finally:
        process.terminate()
        process.wait()


def every_kind(program, directory):
    """Pages of every kind, by name."""
    root = pathlib.Path(__file__).resolve().parent.parent
    small = "-d 500ms --warm-up 100ms --retries 0 --no-ceiling --control none --latency-at none --allow-rough --output".split()
    records = directory / "records"
    records.mkdir()

    def throng(*arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=records, capture_output=True, text=True)
        # Loads this small may be invalid on a busy machine; the page exists all the same.
        if done.returncode not in (0, 4):
            print(f"throng {' '.join(map(str, arguments))}: {done.stderr[-300:]}")

    run = ["run", "--models", "epoll,poll", "--clients", "10,50", "--runs", "6"]
    throng(*run, *small, "vm/a")
    throng(*run, *small, "vm/b")
    throng("compare", "epoll", "poll", "--clients", "10", "--runs", "6", "-d", "300ms", "--allow-rough", "--output", "compare")
    throng("limit", "poll", "select", "--max", "64", "-d", "300ms", "--allow-rough", "--output", "limit")
    # The newest record of a study.
    shutil.copytree(max((root / "results").glob("*/fairness")), records / "study")
    throng("report", "study")
    throng("report", "vm/b", "--diff", "vm/a")
    for name, path in {
        "report of a run": "vm/a/report.html",
        "report of a comparison": "compare/report.html",
        "report of limits": "limit/report.html",
        "report of a study": "study/report.html",
        "two runs side by side": "vm/b/diff.html",
    }.items():
        if (records / path).exists():
            yield name, (records / path).read_text()
        else:
            print(f"{name}: not tried, there is none")
    command = [program, "run", "--models", "epoll", "--clients", "10", "-d", "60s", "--output", "live"]
    running = subprocess.Popen(command, cwd=records, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with view(program, records) as (page, get):
            server = urllib.parse.quote("epoll")
            for _ in range(60):
                text = get("/run/live/progress.json")
                points = json.loads(text).get("now", [None, []])[1] if text.startswith("{") else []
                if len(points) > 3 and "Reading its trials" not in get("/"):
                    break
                time.sleep(1)
            for path in [
                "/", "/?q=nothing", "/run/vm/a/", "/run/live/", "/run/compare/", "/run/limit/", "/run/study/", "/run/vm/a/trials",
                "/run/vm/a/trial?index=0", "/history", f"/history?server={server}", "/nowhere",
            ]:
                yield f"view {path}", page(path)
    finally:
        running.terminate()
        running.wait()


def main():
    browser = chromium()
    if browser is None or shutil.which("npm") is None:
        print("not tried: there is no", "Chromium" if browser is None else "npm")
        return 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        script = axe(directory)
        if script is None:
            print("not tried: npm cannot get axe-core")
            return 0
        if sys.argv[1:2] == ["--all"]:
            program = sys.argv[2] if len(sys.argv) > 2 else "target/release/throng"
            pages = every_kind(str(pathlib.Path(program).resolve()), directory)
        else:
            pages = ((page, pathlib.Path(page).read_text()) for page in sys.argv[1:])
        count = 0
        for page, text in pages:
            for scheme, options in LIGHT_AND_DARK.items():
                found = look(browser, page, text, script, options, directory)
                count += len(found)
                print(f"{page}, {scheme}: {len(found)} findings", flush=True)
                for finding in found:
                    print(f"  {finding['impact']}: {finding['help']} ({finding['id']}), {len(finding['places'])} places")
                    print("".join(f"    {place}\n" for place in finding["places"][:3]), end="")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
