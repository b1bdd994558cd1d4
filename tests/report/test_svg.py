from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats
from scipy.signal import find_peaks

from gammagmm import GammaPosterior, History
from gammagmm.estimator.reasons import usual_values
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.recall import AnomaliesLeft
from gammagmm.monitoring.counts import Count, Period
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import record_sentence, sentence
from gammagmm.posterior.track_record import load_track_record
from gammagmm.report.curves import RankCurve
from gammagmm.report.svg import (
    ShareLine,
    column_svg,
    found_svg,
    left_svg,
    series_svg,
    share_scale,
    share_svg,
    strip_svg,
)

SVG = "{http://www.w3.org/2000/svg}"
ONE = GammaPosterior(0.2, BetaMixture(*np.array([[0.8], [5.0], [95.0]])), 0.004, 0.01)
TWO = GammaPosterior(0.01, BetaMixture(*np.array([[0.5, 0.49], [5.0, 30.0], [95.0, 70.0]])))
UNBOUNDED = GammaPosterior(0.5, BetaMixture(*np.array([[0.5], [0.5], [9.0]])))
ALL_BUT_NONE = GammaPosterior(0.97, BetaMixture(*np.array([[0.03], [5.0], [95.0]])))
TRUNCATED = TWO.given(low=0.1, high=0.3)
DEGENERATE = GammaPosterior.degenerate()
NEARLY_NONE = ONE.given(high=1e-12)
EVERY = [ONE, TWO, UNBOUNDED, ALL_BUT_NONE, TRUNCATED, NEARLY_NONE, DEGENERATE]


class Page(HTMLParser):
    """The tags still open, all tags seen, and the words."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.words = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def find(svg, tag, name):
    return [node for node in svg.iter(f"{SVG}{tag}") if name in node.get("class", "").split()]


def across(node, name):
    """A place across, from 0 to 1; a number without a unit is one of the left edge."""
    return float(node.get(name).removesuffix("%")) / 100.0


class Picture:
    """The SVG in units of the posterior: shares across, and of the plot's height."""

    def __init__(self, svg):
        self.svg = ElementTree.fromstring(svg)
        self.end = float(self.svg.get("data-end"))
        for tick in find(self.svg, "text", "tick"):
            if tick.get("class") == "tick":
                share = float(tick.text.rstrip("%")) / 100.0
                assert self.end * across(tick, "x") ** 2 == pytest.approx(share, abs=1e-4)

    def density(self, name):
        """Shares, and heights as parts of the plot's height."""
        for plot in self.svg.iter(f"{SVG}svg"):
            for node in plot.findall(f"{SVG}path"):
                if node.get("class") == f"{name}-line density":
                    _, _, width, height = map(float, plot.get("viewBox").split())
                    numbers = node.get("d").replace("M", "").replace("L", "").split()
                    x, y = np.array(numbers, dtype=float).reshape(-1, 2).T
                    return self.end * (x / width) ** 2, 1.0 - y / height
        return np.empty(0), np.empty(0)

    def interval(self, name):
        """The interval that is drawn as a bar."""
        (bar,) = (n for n in find(self.svg, "line", "bar") if f"{name}-line" in n.get("class"))
        assert bar.get("y1") == bar.get("y2")
        return [self.end * across(bar, x) ** 2 for x in ("x1", "x2")]

    def atom(self):
        """The height of the atom in pixels above the base line, by the height of the plot."""
        return [
            float(line.get("y1")) - float(line.get("y2"))
            for line in find(self.svg, "line", "reference-line")
            if line.get("x1") == line.get("x2") == "0"
        ]


def table(posterior):
    rows = ElementTree.fromstring(posterior._repr_html_()).iter("tr")
    return {row.find("th").text: row.find("td").text for row in rows}


@pytest.mark.parametrize("posterior", EVERY)
def test_it_is_one_complete_element_that_runs_and_loads_nothing(posterior):
    text = posterior._repr_html_()
    page = Page(text)
    assert page.open == []
    tag, attributes = page.seen[0]
    assert (tag, attributes["class"]) == ("div", "gammagmm-posterior")
    assert {"script", "style", "link", "img", "iframe"}.isdisjoint(tag for tag, _ in page.seen)
    assert not any(name.startswith("on") or name == "href" for _, a in page.seen for name in a)
    assert "nan" not in text.lower()
    assert "inf" not in text.lower()
    assert len(text) < 20_000
    (root,) = (attrs for tag, attrs in page.seen if tag == "svg" and "role" in attrs)
    assert root["role"] == "img"
    assert sentence(posterior) in root["aria-label"]
    assert sentence(posterior) in page.words


def test_the_sentence_and_the_table_hold_the_numbers():
    beta = stats.beta(5.0, 95.0)
    mean, high = 0.8 * beta.mean(), beta.ppf(0.75 / 0.8)
    above = 0.8 * beta.sf(0.15)
    words = Page(ONE._repr_html_()).words
    value = f"{mean:.1%} (model range 0.0% to {high:.1%})"
    reference = [f"{end:.1%}" for end in GammaPosterior.reference().interval()]
    assert words.index(" to ".join(reference)) < words.index(value)
    std = np.sqrt(0.8 * beta.moment(2) - mean**2)
    assert table(ONE) == {
        "mean": f"{mean:.1%}",
        "median": f"{beta.ppf(0.3 / 0.8):.1%}",
        "standard deviation": f"{std:.1%}",
        "model range": f"0.0% to {high:.1%}",
        "P(γ = 0)": "20.0%",
        "P(γ > 15%)": f"{100 * above:.1g}%",
        "Monte Carlo error of the mean": "0.4%",
        "spread of the mean over runs": "1.0%",
    }
    record = record_sentence(load_track_record())
    assert record in words
    assert record in Page(ONE.given(high=0.5)._repr_html_()).words
    for other in (replace(ONE, n_labels=30, is_model=False), GammaPosterior.reference()):
        assert record not in Page(other._repr_html_()).words
    # Numbers that do not exist are not shown.
    assert {"Monte Carlo error of the mean", "spread of the mean over runs"}.isdisjoint(table(TWO))


BY_LABELS = replace(ONE, n_labels=30, is_model=False)
REFERENCE = GammaPosterior.reference()


def assert_is_density(drawn, posterior, highest):
    """The density on an axis of square roots, up to a factor, and what is cut off above it."""
    shares, heights = drawn
    exact = posterior.pdf(shares) * 2.0 * np.sqrt(shares)
    inner = (heights < 0.98 * heights.max()) & (heights > 0.05)
    factor = np.median(exact[inner] / heights[inner])
    pixels = 0.02 * highest  # rounding, and the slope within a tenth of a unit
    np.testing.assert_allclose(exact[inner] / factor, heights[inner], atol=pixels)
    assert heights.max() == pytest.approx(highest, abs=0.02)
    assert heights.min() >= -1e-9
    assert len(shares) > 60


def test_without_labels_the_labelled_tables_stand_in_front_of_the_model():
    picture = Picture(share_svg(ONE))
    assert_is_density(picture.density("accent"), REFERENCE, 0.96)
    assert_is_density(picture.density("alarm"), ONE, 0.55 * 0.96)
    for name, posterior in (("accent", REFERENCE), ("alarm", ONE)):
        assert picture.interval(name) == pytest.approx(posterior.interval(), abs=1e-4)
    words = "".join(picture.svg.itertext())
    low, high = (f"{end:.1%}" for end in REFERENCE.interval())
    assert f"nine of ten public tables: {low} to {high}" in words
    assert "90% interval" not in words
    # On a page with the rows, the model is only a range.
    on_page = Picture(share_svg(ONE, CURVE))
    assert len(on_page.density("alarm")[0]) == 0
    assert on_page.interval("alarm") == picture.interval("alarm")


def test_with_labels_the_posterior_stands_in_front_of_the_labelled_tables():
    picture = Picture(share_svg(BY_LABELS))
    assert_is_density(picture.density("accent"), BY_LABELS, 0.96)
    assert picture.interval("accent") == pytest.approx(BY_LABELS.interval(), abs=1e-4)
    assert len(picture.density("reference")[0]) > 60
    low, high = BY_LABELS.interval()
    assert f"90% interval: {low:.1%} to {high:.1%}" in "".join(picture.svg.itertext())


def test_the_band_is_where_the_share_can_be():
    for posterior, known in ((ONE, REFERENCE), (BY_LABELS, BY_LABELS)):
        picture = Picture(share_svg(posterior))
        band = picture.svg.find(f"{SVG}rect")
        left, width = across(band, "x"), across(band, "width")
        ends = picture.end * np.array([left, left + width]) ** 2
        np.testing.assert_allclose(ends, known.interval(), atol=1e-4)
        (cut,) = find(picture.svg, "line", "cut")
        assert picture.end * across(cut, "x1") ** 2 == pytest.approx(posterior.mean, abs=1e-4)


def test_several_humps_are_drawn():
    x, height = Picture(share_svg(replace(TWO, is_model=False))).density("accent")
    peaks = x[find_peaks(height, prominence=0.1)[0]]
    # On the axis of square roots, the density times the root has its peaks.
    grid = np.linspace(1e-4, 0.5, 50_001)
    exact = TWO.pdf(grid) * np.sqrt(grid)
    expected = grid[1:-1][(exact[1:-1] > exact[:-2]) & (exact[1:-1] > exact[2:])]
    np.testing.assert_allclose(peaks, expected, atol=0.01)


def test_the_point_mass_at_zero_is_drawn_as_an_atom_only():
    picture = Picture(share_svg(DEGENERATE))
    (height,) = picture.atom()
    assert height == pytest.approx(2.0 * Picture(share_svg(UNBOUNDED)).atom()[0], abs=0.2)
    assert Picture(share_svg(TRUNCATED)).atom() == []
    assert find(picture.svg, "line", "cut") == []
    assert picture.interval("accent") == pytest.approx(REFERENCE.interval(), abs=1e-4)
    words = Page(DEGENERATE._repr_html_()).words
    assert record_sentence(load_track_record()) not in words
    assert table(DEGENERATE)["P(γ = 0)"] == "100.0%"
    assert table(DEGENERATE)["model range"] == "0.0% to 0.0%"


def test_a_narrow_peak_leaves_room_for_the_rest():
    peaked = BetaMixture(np.array([0.05, 0.95]), np.array([1e5, 2.0]), np.array([9e5, 18.0]))
    posterior = GammaPosterior(0.0, peaked, n_labels=9, is_model=False)
    shares, heights = Picture(share_svg(posterior)).density("accent")
    broad = heights[(shares > 0.02) & (shares < 0.09)]
    assert heights.max() == pytest.approx(0.96, abs=0.01)
    assert broad.min() > 0.15


def test_a_truncated_posterior_starts_at_its_lower_bound():
    x, _ = Picture(share_svg(replace(TRUNCATED, is_model=False))).density("accent")
    assert (x[0], x[-1]) == pytest.approx((0.1, 0.3), abs=1e-3)


CURVE = RankCurve(
    1000,
    20,
    np.array([0.0, 0.01, 0.02, 0.05, 0.3]),
    np.array([5.0, 4.0, 2.0, 1.0]),
    ((0.001, 5.0, 1), (0.1, 1.0, 0)),
)


def test_the_rows_are_filled_as_far_as_they_are_flagged():
    picture = Picture(share_svg(ONE, CURVE))
    flagged, others = (
        np.array(
            path.get("d").replace("M", "").replace("L", "").rstrip(" Z").split(), dtype=float
        ).reshape(-1, 2)
        for path in (
            next(p for p in find(picture.svg, "path", name) if "density" not in p.get("class"))
            for name in ("alarm", "reference")
        )
    )
    ends = [picture.end * (points[:, 0].max() / 1000.0) ** 2 for points in (flagged, others)]
    assert ends == pytest.approx([0.02, 0.3], abs=1e-4)
    assert picture.end * (others[:, 0].min() / 1000.0) ** 2 == pytest.approx(0.02, abs=1e-4)
    # Heights are the scores: equal steps for 5, 4, 2 and 1.
    base = flagged[:, 1].max()
    heights = base - np.array([flagged[0, 1], flagged[2, 1], others[0, 1], others[2, 1]])
    steps = np.diff(heights)
    np.testing.assert_allclose(steps / steps[0], [1.0, 2.0, 1.0], atol=0.02)
    assert "20 rows flagged" in "".join(picture.svg.itertext())
    assert "20 of 1,000 are flagged" in picture.svg.get("aria-label")
    rows = [node.text for node in find(picture.svg, "text", "rows")]
    assert rows == ["rows", "10", "50", "100", "200", "300"]
    marks = {
        kind: [picture.end * across(node, "cx") ** 2 for node in find(picture.svg, "circle", kind)]
        for kind in ("anomaly", "normal")
    }
    assert marks["anomaly"] == pytest.approx([0.001], abs=1e-4)
    assert marks["normal"] == pytest.approx([0.1], abs=1e-3)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1e-7, "below 0.001%"), (4e-4, "0.04%"), (0.00123, "0.1%"), (0.123, "12.3%")],
)
def test_small_shares_keep_a_digit(share, shown):
    betas = BetaMixture(np.array([1.0 - share]), np.array([5.0]), np.array([95.0]))
    assert table(GammaPosterior(share, betas))["P(γ = 0)"] == shown


def test_text_is_escaped():
    text = ONE._repr_html_()
    assert "P(γ &gt; 15%)" in text
    assert "P(γ > 15%)" not in text


FOUND_BY_CONSENSUS, FOUND_BY_LEARNED = (0, 1, 1, 1, 2, 2, 3), (1, 2, 2, 3, 3, 3, 3)


def curves(consensus, learned):
    rankings = (("learned ranking", "accent", learned), ("consensus", "alarm", consensus))
    return ElementTree.fromstring(found_svg(rankings, "labelled rows"))


@pytest.mark.parametrize(
    ("name", "found"), [("alarm", FOUND_BY_CONSENSUS), ("accent", FOUND_BY_LEARNED)]
)
def test_the_curves_rise_by_a_step_at_each_anomaly(name, found):
    svg = curves(FOUND_BY_CONSENSUS, FOUND_BY_LEARNED)
    (path,) = find(svg, "path", f"{name}-line")
    numbers = np.array(path.get("d").replace("M", "").replace("L", "").split(), dtype=float)
    x, y = numbers.reshape(-1, 2).T
    n_rows, height = 7 * x / 1000.0, y.max() - y
    one = height.max() / 3
    assert (n_rows[0], height[0]) == (0.0, 0.0)
    assert (n_rows[-1], height[-1]) == pytest.approx((7.0, 3 * one), abs=0.01)
    corners = {(i, f) for i, f in enumerate((0, *found))}
    corners |= {(i, f) for i, f in enumerate((0, *found)[:-1], start=1)}
    drawn = zip(n_rows.round(2).tolist(), (height / one).round(2).tolist(), strict=True)
    assert set(drawn) == corners
    # Each line goes right or up.
    assert ((np.diff(n_rows) == 0.0) | (np.diff(height) == 0.0)).all()


@pytest.mark.parametrize(
    ("n_rows", "halves"), [(7, ("3 of 3", "1 of 3")), (6, ("2 of 3", "1 of 2"))]
)
def test_the_picture_of_both_rankings_in_words(n_rows, halves):
    # Half of 7 rows are the first 4.
    svg = curves((0, 1, 1, 1, 2, 2, 3)[:n_rows], (1, 2, 2, 3, 3, 3, 3)[:n_rows])
    assert svg.get("role") == "img"
    for name, half in zip(("learned ranking", "consensus"), halves, strict=True):
        assert f"the {name} has found {half}" in svg.get("aria-label")
    ticks = [node.text for node in find(svg, "text", "tick")]
    assert ticks == ["0", str(n_rows // 2), str(n_rows)]


def test_what_is_found_and_left_on_one_line():
    left = AnomaliesLeft(900, 20, 30.0, 10.0, 80.0, 0.4, 0.2, 0.67)
    svg = ElementTree.fromstring(left_svg(left))
    (rest,), (found,), (whisker,) = (
        find(svg, *each) for each in (("rect", "reference"), ("rect", "alarm"), ("line", "ink"))
    )
    assert across(found, "width") == pytest.approx(0.2)
    assert (across(rest, "x"), across(rest, "width")) == pytest.approx((0.2, 0.3))
    assert (across(whisker, "x1"), across(whisker, "x2")) == pytest.approx((0.3, 1.0))
    for number in ("20", "30", "10", "80"):
        assert number in svg.get("aria-label")


def test_the_value_of_a_row_is_a_mark_on_its_column():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(10.0, 2.0, 2000), rng.random(2000) < 0.03])
    X[0], X[1:, 1] = (40.0, 1.0), X[1:, 1]
    usual = usual_values(X, ["height", "is_new"])
    reasons = {reason.column: reason for reason in usual.reasons(X[[0]])[0]}
    (shape,) = usual.shapes(X, {("height", None)}).values()
    assert shape.place(reasons["height"]) == pytest.approx(1.0)
    assert max(shape.heights) == 1.0
    symbol = ElementTree.fromstring(column_svg(shape, "c0"))
    strip = ElementTree.fromstring(strip_svg(reasons["height"], shape, "c0"))
    band = next(symbol.iter("rect"))
    right = float(band.get("x")) + float(band.get("width"))
    assert float(next(strip.iter("circle")).get("cx")) > right + 10.0
    # A column of normal values is symmetric about its median, on the part that both sides have.
    assert shape.low < 0.5 * (shape.low + shape.high) < shape.high < 0.8


def test_a_rare_text_is_the_part_of_the_rows_that_have_it():
    X = (np.arange(1000) < 45).astype(float)[:, None]
    ((reason,),) = usual_values(X, ["a=b"], {"a=b": ("a", "b")}).reasons(X[[0]])
    bar, own = ElementTree.fromstring(strip_svg(reason)).iter("rect")
    share = float(own.get("width")) / float(bar.get("width"))
    assert share == pytest.approx(0.045, abs=1e-3)
    assert own.get("class") == "alarm"


def test_whole_numbers_have_a_bar_each():
    X = np.append(np.random.default_rng(0).poisson(4.0, 500), 20)[:, None].astype(float)
    (shape,) = usual_values(X, ["items"]).shapes(X, {("items", None)}).values()
    counts = np.bincount(X[:, 0].astype(int))
    np.testing.assert_allclose(shape.heights, counts / counts.max())
    assert len(shape.edges) == len(counts) + 1
    assert shape.low in shape.edges
    assert shape.high in shape.edges


def test_the_density_after_labels_has_no_steps_of_single_rows():
    """Its pixels rise up to one place and fall from there, as the probabilities of the rows do."""
    for n_rows, n_labels, n_found in ((367, 40, 2), (300, 30, 4), (5000, 100, 7)):
        labels = (np.arange(n_labels) < n_found).astype(int)
        rows = LabelledRows(np.arange(float(n_rows))).update(range(n_labels), labels)
        _, heights = Picture(share_svg(rows.posterior)).density("accent")
        rising = np.sign(np.diff(heights)[np.abs(np.diff(heights)) > 2e-3])
        assert np.count_nonzero(np.diff(rising)) <= 1


def test_a_history_is_a_line_of_shares_on_their_usual_ranges():
    counts = [Count(500, k) for k in (20, 18, 22, 160)]
    periods = [Period(f"2026-03-0{1 + t}T09<", count) for t, count in enumerate(counts)]
    history = History("", Count(2000, 80)).add([Period("empty", Count(0, 0)), *periods])
    assert history.changed_places == {4}
    svg = ElementTree.fromstring(series_svg(history, 4))
    bands, points = find(svg, "rect", "usual"), find(svg, "circle", "quiet")
    assert len(bands) == 4
    bottom, top = (float(line.get("y1")) for line in find(svg, "line", "grid")[:2])
    (share,) = (float(text.text[:-1]) / 100 for text in find(svg, "text", "tick")[1:2])
    pixels = (bottom - top) / share
    for band, (low, high) in zip(bands, history.usual_ranges[1:], strict=True):
        assert bottom - float(band.get("y")) == pytest.approx(pixels * high, abs=0.3)
        assert float(band.get("height")) == pytest.approx(pixels * (high - low), abs=0.3)
    for point, band, count in zip(points, bands, counts, strict=False):
        middle = across(band, "x") + 0.5 * across(band, "width")
        assert across(point, "cx") == pytest.approx(middle, abs=1e-4)
        assert bottom - float(point.get("cy")) == pytest.approx(pixels * count.share, abs=0.3)
    assert len(points) == 3
    assert len(find(svg, "path", "changed")) == 1
    words = [text.text for text in find(svg, "text", "tick")]
    assert words[-4:] == [f"2026-03-0{1 + t}T09" for t in range(4)]
    assert len(find(ElementTree.fromstring(series_svg(history, 60)), "rect", "usual")) == 4


def test_a_new_start_is_a_dashed_line():
    periods = [Period(str(t), Count(500, 20)) for t in range(6)]
    history = History("", Count(2000, 80)).add(periods[:3]).acknowledge().add(periods[3:])
    svg = ElementTree.fromstring(series_svg(history, 6))
    (start,) = find(svg, "line", "start")
    before, after = (across(point, "cx") for point in find(svg, "circle", "quiet")[2:4])
    assert across(start, "x1") == pytest.approx(0.5 * (before + after), abs=1e-4)


LARGE = ShareLine("a", 800, 80, 0.1, 0.08, 0.12)
MIDDLE = ShareLine("b", 150, 30, 0.2, 0.15, 0.26)
SMALL = ShareLine("c", 50, 30, 0.6, 0.4, 0.8)


def test_the_scale_of_groups_ends_with_the_intervals_of_most_rows():
    assert share_scale([SMALL, LARGE, MIDDLE], 0.14).end == 0.26
    assert share_scale([SMALL, MIDDLE], 0.14).end == 0.8
    assert share_scale([LARGE], 0.2).end == pytest.approx(0.21)


@pytest.mark.parametrize("line", [LARGE, MIDDLE, SMALL])
def test_a_group_is_a_point_on_its_interval(line):
    scale = share_scale([LARGE, MIDDLE, SMALL], 0.14)
    axis = ElementTree.fromstring(scale.axis())
    ticks = [(float(text.text.rstrip("%")) / 100, across(text, "x")) for text in axis]
    assert [share for share, _ in ticks] == [0.0, 0.1, 0.2]
    assert [place for _, place in ticks] == pytest.approx([0.0, 0.1 / 0.26, 0.2 / 0.26], abs=1e-4)
    picture = ElementTree.fromstring(scale.picture(line))
    (interval,), (mark,) = (find(picture, "line", name) for name in ("share", "overall"))
    ends = [across(each, name) for each in (mark, interval) for name in ("x1", "x2")]
    expected = [0.14, 0.14, min(line.low, 0.26), min(line.high, 0.26)]
    np.testing.assert_allclose(ends, np.array(expected) / 0.26, atol=1e-4)
    # Beyond the end of the scale, an arrow takes the place of the point.
    points = [across(circle, "cx") for circle in find(picture, "circle", "share")]
    shares = [line.share / 0.26] if line.share <= 0.26 else []
    assert points == pytest.approx(shares, abs=1e-4)
    assert len(find(picture, "path", "share")) == (line is SMALL)
    alone = ElementTree.fromstring(share_scale([LARGE]).picture(LARGE))
    assert find(alone, "line", "overall") == []
