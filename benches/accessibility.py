#!/usr/bin/env python3
"""Looks at pages of reports with axe-core in headless Chromium, as light and as dark pages, and lists what it finds.

    benches/accessibility.py throng-results/*/report.html

Ends with 1 where something serious or critical is found. Needs Chromium, and npm to get axe-core; without them it says
so and ends with 0."""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIGHT_AND_DARK = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}

RUN = """
addEventListener("load", () => setTimeout(async () => {
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


def look(browser, page, script, options, directory):
    """What axe finds on a page."""
    text = pathlib.Path(page).read_text()
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
        sys.exit(f"{page}: axe gave no result; the browser said: {dumped.stderr[-500:]}")
    return json.loads(html.unescape(result[1]))


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
        serious = 0
        for page in sys.argv[1:]:
            for scheme, options in LIGHT_AND_DARK.items():
                found = look(browser, page, script, options, directory)
                print(f"{page}, {scheme}: {len(found)} findings")
                for finding in found:
                    serious += finding["impact"] in ["serious", "critical"]
                    print(f"  {finding['impact']}: {finding['help']} ({finding['id']}), {len(finding['places'])} places")
                    print("".join(f"    {place}\n" for place in finding["places"][:3]), end="")
    return 1 if serious else 0


sys.exit(main())
