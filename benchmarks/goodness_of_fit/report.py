"""Tables and a figure of a record of level, power, seconds, agreement and scale."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.goodness_of_fit.settings import Setting
from polystein.tables import markdown

OURS = ("max_mksd_test", "ksd_agg_test", "ksd_test", "fssd_test", "linear_time_test")
THEIRS = ("KSDAgg", "KSD, IMQ", "KSD, Gauss", "FSSD-opt", "linear KSD, Gauss")


def write(settings: dict[str, Setting], record: dict[str, Any], out: Path) -> None:
    """OUT/report.md with everything known, OUT/power.svg with the curves of power."""
    parts = [f"- {part}: {machine}" for part, machine in record.get("machine", {}).items()]
    sections = ["\n".join(parts)]
    known = record.get("power", {})
    for kind, chosen in (("Level", True), ("Power", False)):
        for name, setting in settings.items():
            sizes = [size for size in setting.sizes if (size in setting.right) == chosen and f"{name} {size:g}" in known]
            if sizes:
                sections.append(f"### {kind}: {name}\n\n{rates(name, setting, sizes, known)}")
    if "seconds" in record:
        sections.append("### Seconds a test\n\n" + seconds(record["seconds"]))
    if "agreement" in record:
        sections.append("### Ports beside originals\n\n" + agreement(record["agreement"]))
    if "scale" in record:
        sections.append("### Scale\n\n" + scale(record["scale"]))
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.md").write_text("\n\n".join(sections) + "\n")
    if known and importlib.util.find_spec("matplotlib"):
        figure(settings, known, out / "power.svg")


def share(entry: dict[str, Any], test: str) -> tuple[float, int]:
    """How many samples a test rejected, and of how many."""
    for group in entry.values():
        if test in group["rejected"]:
            return group["rejected"][test] / group["samples"], group["samples"]
    return float("nan"), 0


def cell(rate: float, samples: int) -> str:
    """A percentage and its Monte-Carlo standard error, by Wilson's centre so that it is none where nothing was rejected."""
    middle = (rate * samples + 2) / (samples + 4) if samples else float("nan")
    return f"{100 * rate:.1f} ± {100 * np.sqrt(middle * (1 - middle) / samples):.1f}" if samples else "–"


def rates(name: str, setting: Setting, sizes: list[float], known: dict[str, Any]) -> str:
    """Percentages of samples that are rejected, and what was published."""
    entries = [known[f"{name} {size:g}"] for size in sizes]
    tests = list(dict.fromkeys(test for entry in entries for group in entry.values() for test in sorted(group["rejected"])))
    label = lambda test: f"port: {test}" if test in THEIRS else test
    rows: list[list[Any]] = [[label(test), *(cell(*share(entry, test)) for entry in entries)] for test in tests]
    if setting.published:
        at = [setting.published[setting.sizes.index(size)] for size in sizes]
        rows.append(["KSDAgg as published", *(cell(p, 200) for p in at)])
    counts = [" and ".join(f"{group['samples']}" for group in entry.values()) for entry in entries]
    rows.append(["samples, ours and ports", *counts])
    return markdown([f"% rejected at {setting.axis}", *(f"{size:g}" for size in sizes)], rows)


def seconds(taken: dict[str, dict[str, float]]) -> str:
    """One column a size of sample."""
    tests = list(dict.fromkeys(test for column in taken.values() for test in column))
    rows: list[list[Any]] = [[test, *(f"{column.get(test, float('nan')):.3f}" for column in taken.values())] for test in tests]
    return markdown(["test", *taken], rows)


def agreement(found: dict[str, Any]) -> str:
    """Differences and counts, setting by setting."""
    lines = []
    for name, entry in found.items():
        for title, each in entry.items():
            if isinstance(each, dict):
                shown = lambda v: f"{v[0]} and {v[1]}" if isinstance(v, list) else f"{v:.2g}"
                lines.append(f"- {name}, {title}: " + "; ".join(f"{what} {shown(value)}" for what, value in each.items()))
            else:
                lines.append(f"- {name}, {title}: {each}")
    return "\n".join(lines)


def scale(found: dict[str, Any]) -> str:
    """Seconds, nanoseconds a pair and peak memory."""
    rows: list[list[Any]] = [
        [what, f"{one['seconds']:.2f}", f"{one['ns']:.2f}", one["per"], f"{one['peak']:.2f}", f"{one['before']:.2f}"]
        for what, one in found.items()
        if isinstance(one, dict)
    ]
    table = markdown(["statistic, n x 50", "seconds", "ns", "per", "peak GB", "GB before"], rows)
    return table if "fit" not in found else f"{table}\n\n{found['fit']}"


def figure(settings: dict[str, Setting], known: dict[str, Any], path: Path) -> None:
    """A panel a setting: the share of samples rejected over the size of the difference."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = {
        name: setting
        for name, setting in settings.items()
        if len([size for size in setting.sizes if f"{name} {size:g}" in known]) > 1 and set(setting.sizes) != set(setting.right)
    }
    if not shown:
        return
    matplotlib.rcParams["svg.hashsalt"] = "polystein"
    fig, panels = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.4), sharey=True, squeeze=False, layout="constrained")
    for panel, (name, setting) in zip(panels[0], shown.items(), strict=True):
        sizes = [size for size in setting.sizes if f"{name} {size:g}" in known]
        for group, style, colours in ((OURS, "-", plt.cm.viridis), (THEIRS, "--", plt.cm.autumn)):
            for i, test in enumerate(group):
                y = [share(known[f"{name} {size:g}"], test)[0] for size in sizes]
                label = test if group is OURS else f"{test} (port)"
                panel.plot(
                    sizes, y, style, marker="o" if group is OURS else "x", ms=4, color=colours(0.85 * i / 4), label=label
                )
        panel.axhline(0.05, color="grey", lw=0.6)
        panel.set(title=name, xlabel=setting.axis, ylim=(-0.03, 1.03))
    panels[0][0].set_ylabel("share of samples rejected")
    fig.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
