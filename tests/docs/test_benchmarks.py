"""The pages with benchmarks are those that the results make, and the benchmarks run."""

from __future__ import annotations

import importlib
import json
import sysconfig
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("page")


@pytest.fixture
def mixture(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("mixture")


def test_the_page_on_benchmarks_is_made_from_the_results(page):
    assert read(BENCHMARKS / "README.md") == page.readme(page.load())


def test_the_figures_on_scaling_are_made_from_the_results(page):
    text = read(ROOT / "docs" / "guides" / "large-data.md")
    assert text == page.scaling(text, page.load())


def test_frames_need_little_more_memory_than_arrays():
    found = json.loads(read(BENCHMARKS / "results" / "frames.json"))
    assert found["rows"] * found["columns"] == 20_000_000
    assert max(found["times_numpy"].values()) < 1.2


def test_a_page_without_results_has_no_sections(page):
    text = page.readme({})
    assert text.startswith("# Benchmarks\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## What was tried and not kept"
    ]
    assert page.filled("scaling.md", {}).strip() == ""


def test_growth_is_shown_until_a_method_takes_too_long(page, tmp_path):
    shape = {"axis": "rows", "n_rows": 1000, "n_columns": 10}
    cases = [
        shape | {"method": "ours", "seconds": 1.0, "processor_seconds": 1.5},
        shape | {"method": "gamgmm"},
        shape | {"n_rows": 300, "method": "gamgmm", "seconds": 7.0, "processor_seconds": 7.0},
    ]
    results = {"growth": {"limit": 60.0, "cases": cases}}
    lines = page.growth(results)["table"].splitlines()[2:]
    assert lines == ["| 300 × 10 |  |  | 7.0 |  |", "| 1,000 × 10 | 1.5 |  | > 60 |  |"]
    figures = tmp_path / "a.svg", tmp_path / "b.svg"
    for path in figures:
        page.draw_growth(results, path)
    assert read(figures[0]) == read(figures[1])
    assert "GAMGMM, one evaluation" in read(figures[0])
    assert "scikit-learn" not in read(figures[0])  # it has no time to show


def test_the_figures_of_large_tables_are_shown(page):
    fitted = {"n_sampled": 1000, "seconds": 3.0, "peak_gigabytes": 1.5, "posterior_mean": 0.0412}
    size = {"n_rows": 5000, "n_columns": 10, "workers": 2}
    sampled = fitted | {"seconds": 7.0}
    files = size | fitted | {"parts": 40, "predict_seconds": 9.0, "worker_limit_gigabytes": 2.1}
    files |= {"worker_peak_gigabytes": [0.8, 0.9], "driver_peak_gigabytes": 0.6}
    results = {"compare": size | {"memory": fitted, "dask": sampled}, "dask": files}
    text = page.filled("scaling.md", results)
    assert "| in memory | 1,000 | 3.0 | 1.5 | 0.0412 |" in text
    assert "| on Dask | 1,000 | 7.0 | 1.5 | 0.0412 |" in text
    assert "| `predict` of all rows | 5,000 | 9.0 |" in text
    assert "0.8 and 0.9 GB in the workers" in text


def test_an_iteration_has_the_bound_of_scikit_learn(mixture, monkeypatch):
    monkeypatch.setattr(mixture, "N_COMPONENTS", 5)
    found = mixture.per_iteration(200, 3, n_repeats=2)
    assert found["bound_difference"] < 1e-12
    assert found["ratio"] == pytest.approx(found["sklearn_ms"] / found["ours_ms"])


def test_the_speed_of_the_e_step_counts_two_products(mixture, monkeypatch):
    monkeypatch.setattr(mixture, "N_COMPONENTS", 5)
    monkeypatch.setattr(mixture, "best_seconds", lambda work, n_repeats=1: (1e-3, work()))
    found = mixture.e_step(200, 3, n_runs=2, size=10)
    # Two runs, two products of 200 x 10 features x 5 components, two operations each.
    assert found["gflops"] == pytest.approx(2 * 2 * 2 * 200 * 10 * 5 / 1e6)
    assert found["peak_gflops"] == pytest.approx(2 * 10**3 / 1e6)


def test_results_are_rounded_and_belong_to_their_code(page, tmp_path):
    import timing

    assert timing.rounded({"a": [1.23456789, 7], "b": None}) == {"a": [1.23457, 7], "b": None}
    path, script = tmp_path / "part.json", tmp_path / "script.py"
    script.write_text("one")
    assert not timing.is_current(path, timing.source_hash(script))
    path.write_text(json.dumps({"source": timing.source_hash(script)}))
    assert timing.is_current(path, timing.source_hash(script))
    script.write_text("another")
    assert not timing.is_current(path, timing.source_hash(script))


def test_a_function_in_a_new_process_can_exceed_its_limit(page, mixture, tmp_path):
    import timing

    path = tmp_path / "scores.npy"
    np.save(path, np.ones((2, 1)))
    assert timing.in_new_process(mixture.gamgmm, scores=str(path), limit=0.05) is None


def test_the_sizes_of_an_installation_add_up(page):
    libraries = [
        {"name": "gammagmm", "megabytes": 3.0, "bytecode_megabytes": 1.8, "by_pyod": False},
        {"name": "pyod", "megabytes": 40.0, "bytecode_megabytes": 8.0, "by_pyod": True},
        {"name": "rich", "megabytes": 6.0, "bytecode_megabytes": 0.5, "by_pyod": False},
        {"name": "typer", "megabytes": 1.0, "bytecode_megabytes": 0.2, "by_pyod": False},
    ]
    found = page.install_size({"install_size": {"wheel_megabytes": 0.4, "libraries": libraries}})
    figures = [found[name] for name in ("wheel", "in_all", "own", "by_pyod", "by_us", "bytecode")]
    assert figures == ["0.40", "50", "3.0", "40", "7", "10"]
    assert found["table"].splitlines()[2:] == [
        "| gammagmm | 3.0 | 1.8 |  |",
        "| pyod | 40 | 8.0 | PyOD |",
        "| rich | 6.0 | 0.50 | gammagmm |",
        "| 1 others | 1.0 | 0.20 | both |",
        "| **in all** | 50 | 10 |  |",
    ]


def test_what_a_library_needs_is_followed_to_the_end(page):
    install_size = importlib.import_module("install_size")
    folder = sysconfig.get_path("purelib")
    sizes = {one["name"]: one for one in install_size.sizes(folder)}
    # matplotlib needs Pillow, and PyOD needs matplotlib; Rich needs Pygments.
    assert [sizes[name]["by_pyod"] for name in ("pillow", "llvmlite", "pygments")] == [1, 1, 0]
    assert not {"pytest", "pip", "dask"} & set(sizes)
    assert sizes["llvmlite"]["megabytes"] > 50
