"""``gammagmm monitor``: a kept fit, new files, a history that grows, and exit codes."""

from __future__ import annotations

import io
import json
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from gammagmm import History
from gammagmm.cli.monitor import FALLEN, RAISED
from gammagmm.cli.output import NOT_COMPARABLE
from gammagmm.monitoring.counts import Count, Period
from gammagmm.posterior.comparison import NO_LABELS
from tests.support.command_line import COMMAND, QUICK, gammagmm_here, write_csv
from tests.support.saved_fits import members, npy, packed

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
    """Folder with a kept fit of rows with 2 % outliers, and files with 2, 8 and 24 %."""
    folder = tmp_path_factory.mktemp("kept")
    write_rows(folder / "rows.csv", 0.02, 1000, 0)
    done = gammagmm_here("estimate", "rows.csv", "--save", "sales", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    for share in (2, 8, 24):
        write_rows(folder / f"{share}.csv", share / 100, 1000, share)
    return folder


def monitor(kept, *options):
    return gammagmm_here("monitor", "sales", *options, "--quiet", cwd=kept)


@pytest.mark.long
def test_commands_at_the_same_time_lose_no_period(kept):
    options = ("--history", "together.json", "--quiet", "--period")
    for i in range(3):
        started = []
        for name in (f"a{i}", f"b{i}"):
            write_rows(kept / f"{name}.csv", 0.02, 500, 100 + len(name) * i + ord(name[0]))
            command = [COMMAND, "monitor", "sales", f"{name}.csv", *options, name]
            started.append(subprocess.Popen(command, cwd=kept, stdout=subprocess.DEVNULL))
        assert {process.wait() for process in started} <= {0, RAISED}
    names = [period.name for period in History.load(kept / "together.json").periods]
    assert sorted(names) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_tables_with_2_8_and_24_percent_are_told_in_the_right_order(kept):
    shares, codes = [], []
    for name in ("2", "8", "24"):
        done = monitor(kept, f"{name}.csv", "--history", f"{name}.json", "--json")
        (period,) = json.loads(done.stdout)["periods"]
        assert period["period"] == f"{name}.csv"
        shares.append(period["share"])
        codes.append(done.returncode)
    assert shares == sorted(shares)
    assert codes == [0, 0, RAISED]
    for low, high in (("2", "8"), ("8", "24")):
        done = gammagmm_here("compare", f"{low}.json", f"{high}.json", cwd=kept)
        assert "The share of rows above the threshold is higher in B" in done.stdout


def test_a_history_grows_beside_the_fit_and_does_not_count_rows_twice(kept):
    done = monitor(kept, "2.csv")
    assert done.returncode == 0, done.stderr
    assert "In 2.csv, " in done.stdout
    done = monitor(kept, "24.csv", "--picture", "sales.svg", "--fail-above", "0.99")
    assert done.returncode == RAISED
    assert "Raised since 24.csv: " in done.stdout
    history = History.load(kept / "sales.history.json")
    assert [period.name for period in history.periods] == ["2.csv", "24.csv"]
    assert "<svg" in (kept / "sales.svg").read_text(encoding="utf-8")
    before = (kept / "sales.history.json").read_bytes()
    done = monitor(kept, "2.csv", "--period", "another name")
    assert (done.returncode, done.stdout) == (2, "")
    assert "These rows were counted already, as '2.csv'" in done.stderr
    assert (kept / "sales.history.json").read_bytes() == before
    # The replaced period is the one that is told and compared with the limit; the state is that
    # of the newest one.
    done = monitor(kept, "2.csv", "--force", "--fail-above", "0.1")
    assert done.returncode == RAISED, done.stderr
    assert "In 2.csv, " in done.stdout
    done = monitor(kept, "2.csv", "--force", "--fail-above", "0.001")
    assert done.returncode == ABOVE_LIMIT, done.stderr
    assert (kept / "sales.history.json").read_bytes() == before


def test_the_exit_code_is_3_if_the_newest_interval_lies_above_the_limit(kept):
    done = monitor(kept, "24.csv", "--history", "limit.json", "--fail-above", "0.05")
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


def with_periods(kept, name, counts, group=None):
    """Put a history of the kept fit with these counts at `name`."""
    monitor(kept, "2.csv", "--history", "first.json")
    history = History.load(kept / "first.json")
    periods = tuple(
        Period(f"2026-03-{1 + t:02}", count, {group: count} if group else {}, f"table {t}")
        for t, count in enumerate(counts)
    )
    replace(history, periods=periods).save(kept / name, overwrite=True)
    return replace(history, periods=periods)


def test_the_history_the_answer_and_the_exit_code_agree_about_groups(kept):
    # A day of "a" that shows no change, and then days of "b" alone, or without groups.
    with_periods(kept, "agree.json", [Count(100, 2)] * 20 + [Count(100, 7)], "a")
    options = ("--history", "agree.json", "--json")
    write_rows(kept / "b.csv", 0.02, 100, 11, shop=["b"] * 100)
    write_rows(kept / "plain.csv", 0.02, 100, 12)
    write_rows(kept / "a.csv", 0.5, 100, 13, shop=["a"] * 100)
    codes = []
    for name, by in (("b", ("--by", "shop")), ("plain", ()), ("a", ("--by", "shop"))):
        done = monitor(kept, f"{name}.csv", *options, *by)
        answer = json.loads(done.stdout)
        history = History.load(kept / "agree.json")
        assert answer["state"]["kind"] == history.state.kind
        assert list(answer["groups"]) == list(history.changed_groups())
        codes.append(done.returncode)
    assert codes == [0, 0, RAISED]
    assert list(answer["groups"]) == ["a"]


def test_the_exit_code_follows_the_state_until_it_is_acknowledged(kept):
    with_periods(kept, "state.json", [Count(500, 20)] * 35 + [Count(500, 90)] * 2)
    options = ("--history", "state.json", "--json")
    for day in (1, 2):  # many rows that are like the training rows, and fewer above the threshold
        write_rows(kept / f"back{day}.csv", 0.02, 1500, 20 + day)
    codes, kinds = [], []
    for files in (["back1.csv"], ["back2.csv"], ["24.csv"], ["--acknowledge"], ["8.csv"]):
        done = monitor(kept, *files, *options)
        codes.append(done.returncode)
        kinds.append(json.loads(done.stdout)["state"]["kind"])
    assert kinds == ["back", "back", "raised", "learning", "learning"]
    assert codes == [0, 0, RAISED, 0, 0]
    assert History.load(kept / "state.json").acknowledged == ("24.csv",)
    history = with_periods(kept, "fall.json", [Count(500, 150)] * 35)
    history = replace(history, acknowledged=("2026-03-01",))
    history.save(kept / "fall.json", overwrite=True)
    done = monitor(kept, "2.csv", "--history", "fall.json")
    assert done.returncode == FALLEN
    done = monitor(kept, "--acknowledge", "--history", "none.json")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_day_without_rows_is_a_period_and_a_missing_column_is_refused(kept):
    (kept / "empty.csv").write_text("a,b,c\n", encoding="utf-8")
    (kept / "lacking.csv").write_text("a,b\n", encoding="utf-8")
    options = ("--history", "empty.json", "--json", "--period")
    for name in ("monday", "tuesday"):
        done = monitor(kept, "empty.csv", *options, name)
        assert done.returncode == 0, done.stderr
    (line,) = json.loads(done.stdout)["periods"]
    assert (line["period"], line["n_rows"], line["share"]) == ("tuesday", 0, None)
    assert (
        "tuesday has no rows."
        in monitor(
            kept, "empty.csv", "--history", "empty.json", "--period", "tuesday", "--force"
        ).stdout
    )
    for wrong in (["lacking.csv"], ["empty.csv", "--time", "sold"], ["empty.csv", "--by", "shop"]):
        done = monitor(kept, *wrong, "--history", "empty.json")
        assert (done.returncode, done.stdout) == (2, "")
    assert len(History.load(kept / "empty.json").periods) == 2


def codes(done):
    return [note["code"] for note in json.loads(done.stdout)["notes"]]


def test_rows_without_a_time_are_left_out(kept):
    times = ["2026-03-01", "", "2026-03-02", " "] * 50
    marks = ["1", "", "", "0"] * 50
    write_rows(kept / "blank.csv", 0.2, 200, 41, sold=times, shop=["a", "b"] * 100, checked=marks)
    options = ("--time", "sold", "--by", "shop", "--label-column", "checked", "--report", "b.html")
    done = monitor(kept, "blank.csv", *options, "--history", "blank.json", "--json")
    (note,) = [n for n in json.loads(done.stdout)["notes"] if n["code"] == "history.no time"]
    assert note["values"] == {"n_blank": 100, "n_rows": 200}
    first, second = History.load(kept / "blank.json").periods
    assert (first.name, first.count.n_rows) == ("2026-03-01", 50)
    assert (second.name, second.count.n_rows) == ("2026-03-02", 50)
    assert (first.groups, second.labels) == ({"a": first.count}, None)
    assert (first.labels.n_labels, first.labels.n_anomalies) == (50, 50)
    page = (kept / "b.html").read_text(encoding="utf-8")
    rows = page[page.index('id="rows"') : page.index('id="labels"')]
    assert set(re.findall(r"</td><td>(.*?)</td>", rows)) == {"2026-03-01", "2026-03-02"}


def test_without_rows_with_a_time_the_state_stays(kept):
    write_rows(kept / "first.csv", 0.5, 200, 42, sold=["2026-03-01"] * 200)
    (kept / "none.csv").write_text("a,b,c,sold\n", encoding="utf-8")
    write_rows(kept / "timeless.csv", 0.5, 200, 43, sold=[""] * 200)
    options = ("--time", "sold", "--history", "timed.json", "--json")
    done = monitor(kept, "none.csv", *options)
    assert (done.returncode, done.stdout) == (2, "")  # there is no state yet
    assert not (kept / "timed.json").exists()
    assert monitor(kept, "first.csv", *options).returncode == RAISED
    before = (kept / "timed.json").read_bytes()
    for name in ("none.csv", "timeless.csv"):
        done = monitor(kept, name, *options, "--report", "timed.html")
        assert done.returncode == RAISED, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["state"]["since"], answer["periods"]) == ("2026-03-01", [])
        assert "history.no period" in codes(done)
        assert (kept / "timed.json").read_bytes() == before
        done = monitor(kept, name, *options[:4])
        assert (done.returncode, "2026-03-01" in done.stdout) == (RAISED, True)


def test_a_day_on_which_every_row_is_dropped_is_a_period_without_rows(kept):
    done = gammagmm_here(
        "estimate", "rows.csv", "--save", "strict", "--missing", "drop", *QUICK, cwd=kept
    )
    assert done.returncode == 0, done.stderr
    (kept / "gaps.csv").write_text("a,b,c\n0.1,,0.2\n,0.1,0.2\n", encoding="utf-8")
    done = gammagmm_here(
        "monitor", "strict", "gaps.csv", "--report", "gaps.html", "--json", cwd=kept
    )
    assert done.returncode == 0, done.stderr
    (line,) = json.loads(done.stdout)["periods"]
    assert (line["period"], line["n_rows"]) == ("gaps.csv", 0)
    assert "tables.dropped" in codes(done)
    done = gammagmm_here("predict", "strict", "gaps.csv", "--quiet", cwd=kept)
    assert done.returncode == 2


def test_gaps_are_filled_as_in_training_and_told(kept):
    (kept / "gap.csv").write_text("a,b,c\n0.1,,0.2\n0.3,0.1,0.2\n", encoding="utf-8")
    done = monitor(kept, "gap.csv", "--history", "gap.json", "--json")
    assert done.returncode == 0, done.stderr
    assert any(note["code"] == "tables.filled" for note in json.loads(done.stdout)["notes"])
    assert [period.n_filled for period in History.load(kept / "gap.json").periods] == [1]


def test_a_day_without_rows_between_two_days_is_a_period(kept):
    times = ["2026-03-02"] * 50 + ["2026-03-04"] * 50
    write_rows(kept / "between.csv", 0.02, 100, 51, sold=times)
    options = ("--time", "sold", "--history", "between.json", "--json")
    found = json.loads(monitor(kept, "between.csv", *options).stdout)["periods"]
    assert [(line["period"], line["n_rows"]) for line in found] == [
        ("2026-03-02", 50),
        ("2026-03-03", 0),
        ("2026-03-04", 50),
    ]


def test_the_promise_is_printed_first_and_with_a_change(kept):
    options = ("--history", "news.json", "--period")
    told = []
    for i, share in enumerate((0.02, 0.02, 0.5, 0.5)):
        write_rows(kept / "news.csv", share, 500, 60 + i)
        done = monitor(kept, "news.csv", *options, f"day {i}")
        told.append("the probability of a false alarm" in done.stdout)
    assert told == [True, False, True, False]


def test_labels_and_a_report(kept):
    labels = ["1", "no", "0"] + [""] * 97
    write_rows(kept / "labelled.csv", 0.3, 100, 31, checked=labels)
    options = ("--history", "labels.json", "--report", "watch.html", "--label-column", "checked")
    done = monitor(kept, "labelled.csv", *options, "--json")
    assert done.returncode == RAISED, done.stderr
    (share,) = json.loads(done.stdout)["labels"]
    assert (share["n_labels"], share["n_anomalies"]) == (3, 1)
    words = monitor(kept, "labelled.csv", *options, "--force").stdout
    assert "Of 3 labelled rows in labelled.csv, 1 are anomalies" in words
    page = (kept / "watch.html").read_text(encoding="utf-8")
    assert {'id="columns"', 'id="rows"', 'id="labels"'} <= set(re.findall(r'id="\w+"', page))
    # The page is replaced in each call, as the history is.
    assert monitor(kept, "--acknowledge", *options[:4]).returncode == 0
    assert 'id="rows"' not in (kept / "watch.html").read_text(encoding="utf-8")
    write_rows(kept / "unclear.csv", 0.02, 100, 32, checked=["maybe?"] * 100)
    done = monitor(kept, "unclear.csv", *options)
    assert (done.returncode, done.stdout) == (2, "")


def test_equal_rows_of_another_day_are_counted_and_no_day_is_lost(kept):
    for day in (1, 2):
        write_rows(kept / f"equal{day}.csv", 0.02, 100, 15, sold=[f"2026-03-0{day}"] * 100)
        done = monitor(kept, f"equal{day}.csv", "--time", "sold", "--history", "equal.json")
        assert done.returncode == 0, done.stderr
    names = [period.name for period in History.load(kept / "equal.json").periods]
    assert names == ["2026-03-01", "2026-03-02"]


def test_what_is_replaced_or_dropped_is_told(kept):
    write_rows(kept / "shops.csv", 0.02, 100, 16, shop=["a", "b"] * 50)
    options = ("--history", "told.json")
    monitor(kept, "shops.csv", *options, "--by", "shop")
    (period,) = History.load(kept / "told.json").periods
    had = f"It had {period.count.n_above} of 100 rows above the threshold."
    done = monitor(kept, "shops.csv", *options, "--force")
    lost = "Its counts of groups were dropped, because --by is missing: 'a', 'b'."
    assert f"Period shops.csv was replaced. {had} {lost}" in done.stdout
    done = monitor(kept, "shops.csv", *options, "--force", "--period", "today", "--json")
    (note,) = [n for n in json.loads(done.stdout)["notes"] if n["subject"] == "Period shops.csv"]
    assert note["message"] == (
        f"was dropped, because the same rows are now counted under another name. {had}"
    )


def test_a_name_that_repeats_is_to_be_changed_and_not_replaced(kept):
    options = ("--history", "names.json", "--period", "yesterday.csv")
    monitor(kept, "2.csv", *options)
    done = monitor(kept, "8.csv", *options)
    assert done.returncode == 2
    assert "If these are rows of another period, name it with --period" in done.stderr


def test_detectors_that_changed_are_told(kept):
    files = members(kept / "sales.fit")
    scores = np.load(io.BytesIO(files["stored.0.new_scores.npy"])) + 0.01
    data = json.loads(files["document.json"])
    data["versions"]["pyod"] = "0.1"
    changed = {"stored.0.new_scores.npy": npy(scores), "document.json": json.dumps(data)}
    (kept / "changed.fit").write_bytes(packed(files | changed))
    done = gammagmm_here("monitor", "changed", "2.csv", "--json", "--quiet", cwd=kept)
    notes = json.loads(done.stdout)["notes"]
    assert [note["subject"] for note in notes if note["step"] == "load"] == ["KNN"]
    done = gammagmm_here("monitor", "changed", "8.csv", "--quiet", cwd=kept)
    assert "Detector KNN scores" in done.stdout
    assert "Start a new history" in done.stdout


def test_late_periods_and_periods_of_another_length_are_noted(kept):
    with_periods(kept, "late.json", [Count(100, 2)] * 3)
    write_rows(kept / "late.csv", 0.02, 100, 17, sold=["2026-02-27"] * 100)
    options = ("late.csv", "--time", "sold", "--history", "late.json")
    done = gammagmm_here("monitor", "sales", *options, cwd=kept)
    assert "note: 2026-02-27: is before 2026-03-03, which is in the history" in done.stderr
    done = monitor(kept, *options, "--every", "week", "--json")
    assert "history.length" in codes(done)
    named = ("8.csv", "--period", "2026-02-26", "--history", "late.json", "--json")
    assert "history.earlier" in codes(monitor(kept, *named))
    assert "history.earlier" not in codes(monitor(kept, "24.csv", *named[3:]))


def test_the_number_of_groups_is_told_and_empty_cells_are_missing(kept):
    shops = [f"shop {i}" for i in range(39)] + [""] * 61
    write_rows(kept / "many.csv", 0.02, 100, 18, shop=shops)
    done = monitor(kept, "many.csv", "--by", "shop", "--history", "many.json")
    assert "These are the 30 largest of 40 groups. --json prints all." in done.stdout
    assert "\n(missing)" in done.stdout


def test_compare_shows_the_posteriors_of_kept_fits(kept):
    done = gammagmm_here("compare", "sales.fit", "sales.fit", cwd=kept)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{NOT_COMPARABLE[NO_LABELS]}\n")
    assert "A  sales.fit" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--every", "day"), "--every needs --time"),
        (("--time", "a", "--period", "x"), "--period and --time"),
        (("--time", "sold"), "no column 'sold'"),
        (("--by", "shop"), "no column 'shop'"),
        (("--time", "a"), "1,000 of 1,000 rows have a time that cannot be read"),
        (("--time", "a", "--every", "year"), "must be hour, day, week or month"),
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
