"""``gammagmm monitor``: a kept fit, new files, a history that grows, and exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gammagmm import History
from gammagmm.cli.monitor import ALARM
from gammagmm.cli.output import NO_LABELS
from tests.support.command_line import QUICK, gammagmm_here, write_csv

ABOVE_LIMIT = 3


def rows_of(share, n_rows, seed):
    """Normal rows, a share of them far from the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    X[: round(share * n_rows)] *= 6.0
    return rng.permutation(X)


def write_rows(path, share, n_rows, seed, **columns):
    X = rows_of(share, n_rows, seed)
    return write_csv(path, columns | dict(zip("abc", X.T.tolist(), strict=True)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Folder with a kept fit of rows with 2 % outliers, and files with 2, 8 and 16 %."""
    folder = tmp_path_factory.mktemp("kept")
    write_rows(folder / "rows.csv", 0.02, 1000, 0)
    done = gammagmm_here("fit", "rows.csv", "--save", "sales", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    for share in (2, 8, 16):
        write_rows(folder / f"{share}.csv", share / 100, 1000, share)
    return folder


def monitor(kept, *options):
    return gammagmm_here("monitor", "sales", *options, "--quiet", cwd=kept)


def test_tables_with_2_8_and_16_percent_are_told_in_the_right_order(kept):
    shares, codes = [], []
    for name in ("2", "8", "16"):
        done = monitor(kept, f"{name}.csv", "--history", f"{name}.json", "--json")
        (period,) = json.loads(done.stdout)["periods"]
        assert period["period"] == f"{name}.csv"
        shares.append(period["share"])
        codes.append(done.returncode)
    assert shares == sorted(shares)
    assert codes == [0, ALARM, ALARM]
    for low, high in (("2", "8"), ("8", "16")):
        done = gammagmm_here("compare", f"{low}.json", f"{high}.json", cwd=kept)
        assert "The share of rows beyond the cut is higher in B" in done.stdout


def test_a_history_grows_beside_the_fit_and_does_not_count_rows_twice(kept):
    done = monitor(kept, "2.csv")
    assert done.returncode == 0, done.stderr
    assert "In 2.csv, " in done.stdout
    assert "No alarm: the new rows do not show that the share has risen." in done.stdout
    assert "the whole series is at most 5.0%." in done.stdout
    done = monitor(kept, "16.csv", "--picture", "sales.svg", "--fail-above", "0.99")
    assert done.returncode == ALARM
    assert "Alarm in 16.csv: the share of rows beyond the cut is higher than before" in done.stdout
    history = History.load(kept / "sales.history.json")
    assert [period.name for period in history.periods] == ["2.csv", "16.csv"]
    assert "<svg" in (kept / "sales.svg").read_text(encoding="utf-8")
    before = (kept / "sales.history.json").read_bytes()
    done = monitor(kept, "2.csv", "--period", "another name")
    assert (done.returncode, done.stdout) == (2, "")
    assert "These rows were counted already, as '2.csv'" in done.stderr
    assert (kept / "sales.history.json").read_bytes() == before
    # The replaced period is the one that is told and compared with the limit.
    done = monitor(kept, "2.csv", "--force", "--fail-above", "0.1")
    assert done.returncode == 0, done.stderr
    assert "In 2.csv, " in done.stdout
    done = monitor(kept, "2.csv", "--force", "--fail-above", "0.001")
    assert done.returncode == ABOVE_LIMIT, done.stderr
    assert (kept / "sales.history.json").read_bytes() == before


def test_the_exit_code_is_3_if_the_newest_interval_lies_above_the_limit(kept):
    done = monitor(kept, "16.csv", "--history", "limit.json", "--fail-above", "0.05")
    assert done.returncode == ABOVE_LIMIT
    assert "lies above --fail-above 0.05" in done.stderr


def test_days_and_groups_are_counted(kept):
    times = [f"2026-03-0{1 + i // 100} 08:00" for i in range(300)]
    shops = ["north", "south"] * 150
    write_rows(kept / "days.csv", 0.02, 300, 5, sold=times, shop=shops)
    options = ("--time", "sold", "--by", "shop", "--history", "days.json")
    done = monitor(kept, "days.csv", *options)
    assert done.returncode == 0, done.stderr
    history = History.load(kept / "days.json")
    assert [period.name for period in history.periods] == [f"2026-03-0{i}" for i in (1, 2, 3)]
    assert [period.count.n_rows for period in history.periods] == [100] * 3
    assert {g: c.n_rows for g, c in history.newest.groups.items()} == {"north": 50, "south": 50}
    assert "Groups in 2026-03-03:" in done.stdout
    assert "It covers all rows and every group (Bonferroni)." in done.stdout
    weeks = ("--time", "sold", "--every", "week", "--history", "weeks.json", "--json")
    done = monitor(kept, "days.csv", *weeks)
    found = [(line["period"], line["n_rows"]) for line in json.loads(done.stdout)["periods"]]
    assert found == [("2026-W09", 100), ("2026-W10", 200)]


def test_compare_shows_the_posteriors_of_kept_fits(kept):
    done = gammagmm_here("compare", "sales.fit", "sales.fit", cwd=kept)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{NO_LABELS}\n")
    assert "A  sales.fit" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--every", "day"), "--every needs --time"),
        (("--time", "a", "--period", "x"), "--period and --time"),
        (("--time", "sold"), "has no column 'sold'"),
        (("--by", "shop"), "has no column 'shop'"),
        (("--time", "a"), "1,000 of 1,000 rows have a time that cannot be read"),
        (("--time", "a", "--every", "year"), "--every must be hour, day, week or month"),
        (("--alpha", "2"), "--alpha must lie strictly between 0 and 1"),
        (("--fail-above", "2"), "--fail-above must lie between 0 and 1"),
        (("--picture", "out.txt"), "--picture writes"),
        (("--history", "h.csv"), "--history writes .json, and h.csv ends in .csv"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(kept, options, message):
    history = () if "--history" in options else ("--history", "none.json")
    done = monitor(kept, "2.csv", *options, *history)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (kept / "none.json").exists()


def test_a_damaged_history_and_that_of_another_fit_are_refused(kept):
    (kept / "damaged.json").write_text('{"schema": "gammagmm/history"}', encoding="utf-8")
    done = monitor(kept, "2.csv", "--history", "damaged.json")
    assert done.returncode == 2
    assert "cannot be read as a history" in done.stderr
    monitor(kept, "2.csv", "--history", "other.json")
    history = json.loads((kept / "other.json").read_text(encoding="utf-8"))
    (kept / "other.json").write_text(json.dumps(history | {"fit": "x"}), encoding="utf-8")
    done = monitor(kept, "8.csv", "--history", "other.json")
    assert done.returncode == 2
    assert "The history belongs to another fit" in done.stderr
