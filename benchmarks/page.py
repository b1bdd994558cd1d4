"""Results -> benchmarks/README.md, docs/guides/large-data.md, and the figure of the growth.

    python benchmarks/page.py

Every measured number on the pages comes from a file in benchmarks/results, every word from the
templates. A section of a template whose results are missing is left out.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from string import Template

from timing import RESULTS, ROOT, TRIAL

HERE = Path(__file__).parent
README = HERE / "README.md"
SCALING = ROOT / "docs" / "guides" / "large-data.md"
MARKS = ("<!-- measured by benchmarks/scale.py -->", "<!-- end -->")
GROWTH_FIGURE = "growth.svg"
SECTION = re.compile(r"^<!-- section (\w+) -->\n", re.MULTILINE)
# Results, command and script.
COMMANDS = (
    ("mixture", "make bench", "mixture.py"),
    ("waits", "make waits", "waits.py"),
    ("answers|ranking", "make waits", "answers.py"),
    ("growth", "make growth", "growth.py"),
    ("command", "make bench", "command.py"),
    ("same_process|costs", "make bench", "detectors.py"),
    ("imports", "make bench", "imports.py"),
    ("install_size", "make bench", "install_size.py"),
    ("labels", "make bench", "labels.py"),
    ("label_page", "make bench", "label_page.py"),
    ("cost", "make bench", "cost.py"),
    ("heavy_starts", "make bench-large", "heavy_starts.py"),
    ("ten_runs", "make bench-large", "mixture.py --large"),
    ("command_large", "make bench-large", "command.py --large"),
    ("slow_detectors|subsets", "make bench-large", "detectors.py --large"),
    ("compare|dask", "make bench-large", "scale.py --large"),
)
MIN_MEGABYTES = 5.0
"""Smaller libraries have no line of their own in the table of sizes."""
EXACT = "exact_ms_per_iteration_and_run"
GPU = (
    (f"{EXACT}_1000000_rows_1_runs", 1_000_000, "one iteration of one run"),
    (f"{EXACT}_1000000_rows_10_runs", 1_000_000, "one iteration of ten runs, for each run"),
    (f"{EXACT}_10000000_rows_1_run", 10_000_000, "one iteration of one run"),
    ("default_posterior_20000_rows", 20_000, "posterior, default settings"),
    ("default_posterior_1000000_rows", 1_000_000, "posterior, default settings"),
    ("default_posterior_10000000_rows", 10_000_000, "posterior, default settings"),
    ("exact_posterior_1000000_rows", 1_000_000, "posterior, plain steps, `tol=1e-3`, all rows"),
)


GROWTH = {
    "ours": ("gammaGMM, all of a fit", "o-", "#0072B2"),
    "pyod": ("PyOD's eight detectors", "s-", "#D55E00"),
    "gamgmm": ("GAMGMM, one evaluation", "^-", "#009E73"),
    "sklearn": ("scikit-learn, ten mixtures", "v-", "#CC79A7"),
}
GROWTH_ROWS = 2_000
AXES = {"rows": "n_rows", "columns": "n_columns"}


def load(folder=RESULTS):
    """The results by the name of their file."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def table(header, rows):
    lines = [header.split(" | "), ["---"] * len(header.split(" | ")), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def short(value):
    """A number with at least two significant digits."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def commands(results):
    """What measures which results, and how long that took."""
    lines = []
    for pattern, command, script in COMMANDS:
        names = [name for name in results if re.fullmatch(pattern, name)]
        if names:
            took = sum(results[name].get("seconds_in_all", 0.0) for name in names) / 60
            files = ", ".join(f"`{name}.json`" for name in names)
            lines.append([f"`{command}`", f"`{script}`", f"{took:.1f}" if took else "", files])
    return table("command | script | minutes | results", lines) if lines else ""


def waits(results):
    found = results.get("waits")
    if found is None:
        return None
    lines = [
        [
            case["name"],
            *(short(case["before"][key]) for key in ("seconds", "slowest")),
            *(short(case["now"][key]) for key in ("seconds", "slowest")),
            *(f"{case[key]:.1f}" for key in ("ratio", "ratio_of_slowest")),
            short(case["now"]["longest_detector_seconds"]),
            *(f"{case[which]['peak_gigabytes']:.2f}" for which in ("before", "now")),
            *(f"{case[which]['posterior_mean']:.3f}" for which in ("before", "now")),
        ]
        for case in found["cases"]
    ]
    header = (
        "table | before, s | slowest | now, s | slowest | ratio | of the slowest | "
        "longest detector now, s | before, GB | now, GB | posterior mean before | now"
    )
    about = {key: found[key] for key in ("cores", "earlier", "repeats", "draws")}
    return about | {"table": table(header, lines)}


def answers(results):
    found = results.get("answers")
    if found is None:
        return None
    lines = [
        [name, *(f"{found[which][name]:.4f}" for which in ("before", "now"))]
        for name in found["before"]
    ]
    about = {key: found[key] for key in ("sets", "seeds", "earlier")}
    moved = {"change": f"{found['change']['mean']:+.4f}".replace("-", "−")}
    moved["absolute"] = f"{found['change']['absolute']:.4f}"
    return about | moved | {"table": table("figure | before | now", lines)}


def ranking(results):
    found = results.get("ranking")
    if found is None:
        return None
    lines = [
        [
            name,
            "all" if size == "all" else f"> {found['large_rows']:,}",
            one["tables"],
            one["changed"],
            *(f"{one[key]:.4f}" for key in ("before", "now", "largest_drop")),
        ]
        for name, sizes in found["collections"].items()
        for size, one in sizes.items()
        if one["tables"]
    ]
    header = "collection | rows | tables | changed | before | now | largest drop of a table"
    return {"earlier": found["earlier"], "table": table(header, lines)}


def heavy_starts(results):
    found = results.get("heavy_starts")
    if found is None:
        return None
    lines = [
        [
            rule,
            f"{one['lost']} of {one['solved']}",
            f"{one['iterations']:,}",
            *(
                f"{one['change'][key]:.4f}".replace("-", "−")
                for key in ("mean", "absolute", "spread of seeds")
            ),
        ]
        for rule, one in found["rules"].items()
    ]
    header = (
        "a start ends above | solutions lost | iterations | change | absolute | spread of seeds"
    )
    about = {"tables": found["tables"], "starts": found["starts"]}
    return about | {"table": table(header, lines)}


def growth(results):
    found = results.get("growth")
    if found is None:
        return None
    lines = []
    for axis, size in AXES.items():
        own = [case for case in found["cases"] if case["axis"] == axis]
        for n in sorted({case[size] for case in own}):
            at = {case["method"]: case for case in own if case[size] == n}
            shape = next(iter(at.values()))
            cells = [growth_cell(at.get(method), found["limit"]) for method in GROWTH]
            lines.append([f"{shape['n_rows']:,} × {shape['n_columns']}", *cells])
    header = " | ".join(["table", *(label for label, _, _ in GROWTH.values())])
    about = {"limit": f"{found['limit']:.0f}", "n_rows": f"{GROWTH_ROWS:,}"}
    return about | {"table": table(header, lines)}


def growth_cell(case, limit):
    """Seconds of the processor, that they are more than the limit, or nothing."""
    if case is None:
        return ""
    return short(case["processor_seconds"]) if "seconds" in case else f"> {limit:.0f}"


def mixture(results):
    found = results.get("mixture")
    if found is None:
        return None
    iterations = [
        [
            f"{one['n_rows']:,}",
            one["n_detectors"],
            *(short(one[key]) for key in ("ours_ms", "sklearn_ms", "ratio")),
            f"{one['bound_difference']:.0e}",
        ]
        for one in found["per_iteration"]
    ]
    e_steps = [
        [one["n_runs"], short(one["gflops"]), short(one["peak_gflops"]), f"{one['share']:.0%}"]
        for one in found["e_step"]
    ]
    steps = [
        [
            name,
            f"{one['iterations']:,}",
            short(one["seconds"]),
            f"{one['mean_bound']:,.1f}",
            f"{one['posterior_mean']:.4f}",
        ]
        for name, one in found["steps"].items()
    ]
    header = "rows | detectors | ours, ms | scikit-learn, ms | ratio | bounds differ by"
    about = found["e_step"][0]
    return {
        "cores": found["cores"],
        "n_components": found["n_components"],
        "table": table(header, iterations),
        "n_rows": f"{about['n_rows']:,}",
        "n_detectors": about["n_detectors"],
        "threads": about["threads"],
        "e_steps": table("runs | E-step, GFLOP/s | product, GFLOP/s | share", e_steps),
        "steps": table("steps, `tol` | iterations | s | mean bound | posterior mean", steps),
    }


def ten_runs(results):
    found = results.get("ten_runs", results.get("mixture", {}).get("ten_runs"))
    if found is None:
        return None
    names = {"gamgmm": "`GAMGMM`, one evaluation", "sklearn": "scikit-learn, ten mixtures"}
    lines = [["ours, ten runs", short(found["ours"]["seconds"]), found["ours"]["iterations"], ""]]
    for name in filter(found.__contains__, names):
        one = found[name]
        numbers = [short(one["seconds"]), one.get("iterations", ""), short(one["ratio"])]
        lines.append([names[name], *numbers])
    return {
        "n_rows": f"{found['n_rows']:,}",
        "table": table("method | s | iterations | ratio", lines),
    }


def command(results):
    found = results.get("command")
    return found and {
        "n_rows": found["n_rows"],
        "n_columns": found["n_columns"],
        "default": f"{found['default_seconds']:.1f}",
        "one_job": f"{found['one_job_seconds']:.1f}",
        "first_time": f"{found['first_time_seconds']:.1f}",
    }


def command_large(results):
    found = results.get("command_large")
    return found and {
        "n_rows": f"{found['n_rows']:,}",
        "n_columns": found["n_columns"],
        "megabytes": f"{found['csv_megabytes']:.0f}",
        "reading": short(found["reading_seconds"]),
        "fit": short(found["fit_seconds"]),
        "writing": short(found["writing_seconds"]),
    }


def imports(results):
    found = results.get("imports")
    return found and {
        "processes": found["processes"],
        "earlier": found["earlier"],
        "alone": f"{1000 * found['gammagmm_seconds']:.1f}",
        "alone_before": f"{1000 * found['earlier_gammagmm_seconds']:.1f}",
        "on_top": f"{1000 * found['gammagmm_on_top_seconds']:.0f}",
        "on_top_before": f"{1000 * found['earlier_on_top_seconds']:.0f}",
    }


def install_size(results):
    found = results.get("install_size")
    if found is None:
        return None
    (own,) = (one for one in found["libraries"] if one["name"] == "gammagmm")
    others = [one for one in found["libraries"] if one is not own]
    lines = [size_line("gammagmm", [own], "")]
    shown = [one for one in others if one["megabytes"] >= MIN_MEGABYTES]
    for one in shown:
        lines.append(size_line(one["name"], [one], "PyOD" if one["by_pyod"] else "gammagmm"))
    rest = [one for one in others if one not in shown]
    lines.append(size_line(f"{len(rest)} others", rest, "both"))
    lines.append(size_line("**in all**", found["libraries"], ""))
    by_us = [one for one in others if not one["by_pyod"]]
    return {
        "wheel": f"{found['wheel_megabytes']:.2f}",
        "in_all": f"{megabytes(found['libraries']):.0f}",
        "by_pyod": f"{megabytes([one for one in others if one['by_pyod']]):.0f}",
        "own": f"{megabytes([own]):.1f}",
        "by_us": f"{megabytes(by_us):.0f}",
        "bytecode": f"{megabytes(found['libraries'], 'bytecode_megabytes'):.0f}",
        "table": table("library | MB | of it bytecode | needed by", lines),
    }


def megabytes(libraries, key="megabytes"):
    return sum(one[key] for one in libraries)


def size_line(name, libraries, needed_by):
    own = megabytes(libraries), megabytes(libraries, "bytecode_megabytes")
    return [name, *map(short, own), needed_by]


def labels(results):
    found = results.get("labels")
    names = ("suggest_seconds", "update_seconds", "width_seconds")
    return found and {
        "n_rows": f"{found['rows']:,}",
        "seconds": f"{sum(found[name] for name in names):.2f}",
        "teaching_labels": found["teaching_labels"],
        "learn": f"{found['learn_seconds']:.1f}",
        "consensus": f"{found['consensus_seconds']:.1f}",
        "learned": f"{found['learned_seconds']:.1f}",
        "learned_ratio": f"{found['learned_seconds'] / found['consensus_seconds']:.2f}",
        "command_rows": f"{found['command_rows']:,}",
        "first": f"{found['inspect_seconds']:.1f}",
        "second": f"{found['inspected_seconds']:.1f}",
        "ratio": f"{found['inspected_seconds'] / found['inspect_seconds']:.2f}",
        "times": found["times"],
    }


def label_page(results):
    found = results.get("label_page")
    return found and {
        "n_rows": f"{found['rows']:,}",
        "n_columns": found["columns"],
        "answers": found["answers"],
        "median": f"{found['median_ms']:.0f}",
        "most": f"{found['max_ms']:.0f}",
    }


def same_process(results):
    found = results.get("same_process")
    if found is None:
        return None
    slow = results.get("slow_detectors", {"detectors": []})["detectors"]
    lines = [
        [
            one["detector"],
            f"{one['n_rows']:,} × {one['n_columns']}",
            *(short(one[key]) for key in ("ours", "pyod", "ratio")),
            "0" if one["difference"] == 0 else f"{one['difference']:.0e}",
        ]
        for one in found["detectors"] + slow
    ]
    header = "detector | rows × columns | ours, s | PyOD, s | ratio | scores differ by"
    single = [f"{one['detector']} at {one['n_rows']:,} × {one['n_columns']}" for one in slow]
    about = {"n_repeats": found["n_repeats"], "single": " and ".join(single)}
    return about | {"table": table(header, lines)}


def costs(results):
    found = results.get("costs")
    if found is None:
        return None
    lines = [
        [
            one["detector"],
            f"{one['n_rows']:,} × {one['n_columns']}",
            short(one["seconds"]),
            f"{one['unit']:.2g} {'µs' if one['detector'] == 'LSCP' else 'ns'}",
            f"{one['training_unit']:.2g} ns" if "training_unit" in one else "",
        ]
        for one in found["rows"]
    ]
    header = "detector | rows × columns | s | unit | unit of the training"
    return {"rows_fitted": f"{found['rows_fitted']:,}", "table": table(header, lines)}


def subsets(results):
    if "subsets" not in results:
        return None
    lines = []
    for one in results["subsets"]["rows"]:
        figures = ["skipped", "", ""]
        if "skipped" not in one:
            figures = [f"{one['spearman']:.2f}", f"{one['auc']:.3f}", f"{one['auc_consensus']:.3f}"]
        lines.append([one["dataset"], f"{one['rows']:,}", one["detector"], one["rows_fitted"]])
        lines[-1] += figures
    header = "dataset | rows | detector | rows fitted | rank correlation | AUC | AUC, consensus"
    return {"table": table(header, lines)}


def gpu(results):
    found = results.get("gpu")
    if found is None:
        return None
    small, large = (found[key] for key, _, what in GPU if what == "one iteration of one run")
    lines = []
    for key, n_rows, what in filter(lambda line: line[0] in found, GPU):
        is_posterior = isinstance(found[key], dict)
        time = f"{found[key]['seconds']:.1f} s" if is_posterior else f"{found[key]:.2f} ms"
        lines.append([f"{n_rows:,}", what, time])
    return {
        "device": found["device"],
        "torch": found["torch"].split("+")[0],
        "fixed": f"{small - (large - small) / 9.0:.1f}",
        "table": table("rows | what | time", lines),
    }


def compare(results):
    found = results.get("compare")
    if found is None:
        return None
    names = {"memory": "in memory", "dask": "on Dask"}
    head = "where | rows in the fit | s | peak memory, GB | posterior mean"
    lines = [
        [
            names[name],
            f"{found[name]['n_sampled']:,}",
            short(found[name]["seconds"]),
            f"{found[name]['peak_gigabytes']:.1f}",
            f"{found[name]['posterior_mean']:.4f}",
        ]
        for name in names
    ]
    return {
        "n_rows": f"{found['n_rows']:,}",
        "n_columns": found["n_columns"],
        "workers": found["workers"],
        "table": table(head, lines),
    }


def dask(results):
    found = results.get("dask")
    if found is None:
        return None
    lines = [
        ["`fit`", f"{found['n_sampled']:,}", short(found["seconds"])],
        ["`predict` of all rows", f"{found['n_rows']:,}", short(found["predict_seconds"])],
    ]
    return {
        "n_rows": f"{found['n_rows']:,}",
        "n_columns": found["n_columns"],
        "parts": found["parts"],
        "workers": found["workers"],
        "limit": f"{found['worker_limit_gigabytes']:.1f}",
        "peaks": " and ".join(f"{peak:.1f}" for peak in found["worker_peak_gigabytes"]),
        "driver": f"{found['driver_peak_gigabytes']:.1f}",
        "table": table("step | rows | s", lines),
    }


VALUES = {
    "waits": waits,
    "answers": answers,
    "ranking": ranking,
    "heavy_starts": heavy_starts,
    "growth": growth,
    "mixture": mixture,
    "ten_runs": ten_runs,
    "command": command,
    "command_large": command_large,
    "imports": imports,
    "install_size": install_size,
    "labels": labels,
    "label_page": label_page,
    "same_process": same_process,
    "subsets": subsets,
    "costs": costs,
    "compare": compare,
    "dask": dask,
    "gpu": gpu,
    "always": lambda results: {},
}


def filled(template, results):
    """The template with its values, without the sections that have none."""
    text = (HERE / "templates" / template).read_text(encoding="utf-8")
    beginning, *sections = SECTION.split(text)
    parts = [Template(beginning).substitute(commands=commands(results))]
    for name, words in zip(sections[::2], sections[1::2], strict=True):
        values = VALUES[name](results)
        if values is not None:
            parts.append(Template(words).substitute(values))
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def readme(results):
    """The text of benchmarks/README.md."""
    return filled("README.md", results)


def scaling(text, results):
    """The text of docs/guides/large-data.md with the measured part between the marks."""
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return f"{before}{MARKS[0]}\n{filled('scaling.md', results)}{MARKS[1]}{after}"


def draw_growth(results, path):
    """Draw seconds of the processor against rows and against columns, on logarithmic axes."""
    panels = {
        axis: [
            (label, style, colour, points)
            for method, (label, style, colour) in GROWTH.items()
            if (
                points := [
                    (case[size], case["processor_seconds"])
                    for case in results["growth"]["cases"]
                    if (case["axis"], case["method"]) == (axis, method) and "seconds" in case
                ]
            )
        ]
        for axis, size in AXES.items()
    }
    draw_panels(panels, "seconds of the processor", path)


def draw_panels(panels, what, path):
    """Lines of each panel side by side; the same lines give the same file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "gammagmm", "svg.fonttype": "none"}):
        figure = Figure(figsize=(2.2 + 4.2 * len(panels), 4.0), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for ax, (name, lines) in zip(axes, panels.items(), strict=True):
            for label, style, colour, points in lines:
                ax.loglog(*zip(*points, strict=True), style, color=colour, label=label)
            ax.set_xlabel(name)
            ax.grid(alpha=0.3)
        axes[0].set_ylabel(what)
        if axes[0].lines:
            axes[0].legend(frameon=False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the pages of a trial")
    is_trial = parser.parse_args().quick
    folder = TRIAL if is_trial else RESULTS
    results = load(folder)
    if "growth" in results:
        draw_growth(results, folder / GROWTH_FIGURE)
    text = scaling(SCALING.read_text(encoding="utf-8"), results)
    (TRIAL / "README.md" if is_trial else README).write_text(readme(results), encoding="utf-8")
    (TRIAL / "scaling.md" if is_trial else SCALING).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
