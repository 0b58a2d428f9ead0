"""The quick version of all three experiments on real data, and its page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from polystein import cli
from polystein.report.section import slug

SECTIONS = ("A Gaussian in the plane", "Logistic regression on Covertype", "Neural networks on the UCI sets")
PHONE, DESK = 390, 1200
CONTRAST = 4.5  # of text and what is behind it (WCAG 2, level AA)


@pytest.fixture(scope="module")
def report(shared, tmp_path_factory):
    """Two methods of each experiment, two trials."""
    out = tmp_path_factory.mktemp("report")
    asked = ["reproduce", "paper", "--quick", "--trials", "2", "--methods", "MK-SVGD", "ensemble", "--out", str(out)]
    assert cli.main([*asked, "--data", str(shared / "data")]) == 0
    return out


def test_the_quick_version_runs_all_experiments_on_real_data(report):
    found = [json.loads(line) for line in (report / "records.jsonl").read_text("utf-8").splitlines()]
    ran = {(record["config"]["experiment"], record["config"]["method"]) for record in found}
    pairs = {(name, method) for name in ("gaussian", "covtype", "uci") for method in ("MK-SVGD", "ensemble")}
    assert ran == pairs - {("gaussian", "ensemble")}
    accuracy = [record["result"]["accuracy"] for record in found if record["config"]["experiment"] == "covtype"]
    assert min(accuracy) > 0.6  # the larger class has 51 %
    page = (report / "report.html").read_text("utf-8")
    for title in SECTIONS:
        assert f'id="{slug(title)}"' in page
    assert not re.search(r"""(src|href)=["'](https?:|//)""", page)
    assert page.count("<svg") == len(list((report / "figures").glob("*.svg"))) >= 6


# Loads the page at two widths and says what is wrong with it.
HARNESS = """<!doctype html><meta charset="utf-8"><body><pre id="found">nothing</pre><script>
const widths = [%d, %d], found = {dark: matchMedia("(prefers-color-scheme: dark)").matches, troubles: []};
const rgb = text => (text.match(/[0-9.]+/g) || [0, 0, 0, 0]).map(Number);
const light = c => { const l = c.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * l[0] + .7152 * l[1] + .0722 * l[2]; };
function behind(element, view) {
  for (let e = element; e; e = e.parentElement) { const c = rgb(view.getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; }
  return [255, 255, 255]; }
function look(frame, width) {
  const view = frame.contentWindow, page = view.document, said = words => found.troubles.push(width + ": " + words);
  if (page.documentElement.scrollWidth > width) said("scrolls sideways to " + page.documentElement.scrollWidth);
  found.paper = view.getComputedStyle(page.body).backgroundColor;
  for (const e of page.body.querySelectorAll("*")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length) continue;
    const style = view.getComputedStyle(e), svg = e instanceof view.SVGElement;
    const a = light(rgb(svg ? style.fill : style.color)), b = light(behind(e, view));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const box = e.getBoundingClientRect(), words = "'" + e.textContent.trim().slice(0, 30) + "'";
    if (contrast < %f) said(words + " has a contrast of " + contrast.toFixed(2));
    if (!svg && !e.closest("sup") && parseFloat(style.fontSize) < 12) said(words + " is small");
    if (box.right > width + 1 && !e.closest(".scroll")) said(words + " is cut off"); }
  found[width] = page.querySelectorAll("section").length; }
let left = widths.length;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style = "border:0;height:3000px;width:" + width + "px";
  frame.onload = () => { look(frame, width); left -= 1;
    if (!left) document.getElementById("found").textContent = JSON.stringify(found); };
  frame.src = "report.html"; document.body.append(frame); }
</script>"""


def look(report: Path, tmp_path: Path, *, dark: bool) -> tuple[dict, str]:
    """What the browser finds, and what it says on its console."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium here; install it (Debian: apt-get install chromium)")
    (report / "harness.html").write_text(HARNESS % (PHONE, DESK, CONTRAST), "utf-8")
    switches = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    switches += " --disable-component-update --disable-sync --enable-logging=stderr --allow-file-access-from-files"
    switches += f" --virtual-time-budget=20000 --blink-settings=preferredColorScheme={0 if dark else 1} --dump-dom"
    command = [browser, *switches.split(), f"--user-data-dir={tmp_path / 'profile'}", (report / "harness.html").as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    match = re.search(r'<pre id="found">(.*?)</pre>', ran.stdout, re.S)
    assert match, ran.stderr
    assert match[1] != "nothing", ran.stderr
    return json.loads(unescape(match[1])), "\n".join(line for line in ran.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_reads_well_in_a_browser(dark, report, tmp_path):
    """On a phone and a desk: nothing is cut off or sideways, text is large and stands out, the console is silent."""
    found, console = look(report, tmp_path, dark=dark)
    assert found["dark"] is dark
    assert found["paper"] == ("rgb(20, 23, 27)" if dark else "rgb(251, 250, 247)")
    assert found[str(PHONE)] == found[str(DESK)] == len(SECTIONS)
    assert found["troubles"] == []
    assert console == ""
