from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaPosterior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import record_sentence
from gammagmm.posterior.track_record import load_track_record
from gammagmm.report.svg import ShareLine, found_svg, share_scale

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


class Picture:
    """The SVG in units of the posterior: shares across, and of the plot's height."""

    def __init__(self, posterior):
        self.svg = ElementTree.fromstring(posterior._repr_html_()).find(f"{SVG}svg")
        ticks = [node for node in self.find("text") if node.get("class") == "tick"]
        at = np.array([float(node.get("x")) for node in ticks])
        shares = np.array([float(node.text.rstrip("%")) / 100.0 for node in ticks])
        self.slope, self.start = np.polyfit(shares, at, 1)
        np.testing.assert_allclose(at, self.start + self.slope * shares, atol=0.051)
        (axis,) = (n for n in self.find("line") if n.get("class") == "axis")
        (mean,) = (n for n in self.find("line") if n.get("class") == "mean")
        self.bottom, self.height = (
            float(axis.get("y1")),
            float(mean.get("y2")) - float(mean.get("y1")),
        )
        self.mean = self.across(float(mean.get("x1")))

    def find(self, tag):
        return self.svg.iter(f"{SVG}{tag}")

    def across(self, x):
        return (x - self.start) / self.slope

    def up(self, y):
        return (self.bottom - y) / self.height

    def path(self, name):
        (node,) = (n for n in self.find("path") if n.get("class") == name)
        numbers = np.array(node.get("d").replace("M", "").replace("L", "").rstrip("Z ").split())
        x, y = numbers.astype(float).reshape(-1, 2).T
        return self.across(x), self.up(y)

    def atom(self):
        return [self.up(float(n.get("cy"))) for n in self.find("circle")]


def table(posterior):
    rows = ElementTree.fromstring(posterior._repr_html_()).iter("tr")
    return {row.find("th").text: row.find("td").text for row in rows}


@pytest.mark.parametrize("posterior", EVERY)
def test_it_is_one_complete_element_that_runs_and_loads_nothing(posterior):
    text = posterior._repr_html_()
    page = Page(text)
    assert page.open == []
    assert page.seen[0] == ("div", {"class": "gammagmm-posterior"})
    assert {"script", "style", "link", "img", "iframe"}.isdisjoint(tag for tag, _ in page.seen)
    assert not any(name.startswith("on") or name == "href" for _, a in page.seen for name in a)
    assert "nan" not in text.lower()
    assert "inf" not in text.lower()
    assert len(text) < 20_000
    (root,) = (attrs for tag, attrs in page.seen if tag == "svg")
    assert root["role"] == "img"
    assert root["aria-label"].startswith("Posterior density of the share of anomalies. ")
    assert root["aria-label"].split(". ", 1)[1] in page.words


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


def test_the_picture_is_the_density_with_interval_mean_and_atom():
    picture, beta = Picture(ONE), stats.beta(5.0, 95.0)
    pixel = 1.0 / picture.slope
    x, height = picture.path("density")
    peak = beta.pdf(4.0 / 98.0)
    assert height.max() == pytest.approx(1.0, abs=0.002)
    # Each point within the rounding to a tenth of a pixel, across and up.
    steepest = np.abs(np.gradient(beta.pdf(np.linspace(0.0, 0.3, 3001)), 1e-4)).max() / peak
    np.testing.assert_allclose(height, beta.pdf(x) / peak, atol=0.1 * pixel * steepest + 0.002)
    assert (x[0], x[-1]) == pytest.approx((0.0, beta.isf(1e-4)), abs=pixel)
    assert len(x) > 100
    shaded, _ = picture.path("interval")
    ends = (0.0, beta.ppf(0.75 / 0.8))
    assert (shaded.min(), shaded.max()) == pytest.approx(ends, abs=0.2 * pixel)
    assert picture.mean == pytest.approx(0.8 * 0.05, abs=0.2 * pixel)
    assert picture.atom() == pytest.approx([0.2], abs=0.001)


def test_several_humps_are_drawn():
    x, height = Picture(TWO).path("density")
    peaks = x[1:-1][(height[1:-1] > height[:-2]) & (height[1:-1] > height[2:])]
    np.testing.assert_allclose(peaks, [4.0 / 98.0, 29.0 / 98.0], atol=0.01)


def test_the_point_mass_at_zero_is_drawn_as_an_atom_only():
    picture = Picture(DEGENERATE)
    assert list(picture.find("path")) == []
    assert picture.atom() == pytest.approx([1.0])
    assert picture.mean == pytest.approx(0.0, abs=1e-6)
    words = Page(DEGENERATE._repr_html_()).words
    assert record_sentence(load_track_record()) not in words
    assert table(DEGENERATE)["P(γ = 0)"] == "100.0%"
    assert table(DEGENERATE)["model range"] == "0.0% to 0.0%"


def test_an_unbounded_density_stays_inside_the_picture():
    x, height = Picture(UNBOUNDED).path("density")
    assert height[0] == pytest.approx(1.0, abs=0.002)
    assert (np.diff(height) <= 0.0).all()
    assert x[-1] > 0.3


def test_a_truncated_posterior_starts_at_its_lower_bound_and_has_no_atom():
    picture = Picture(TRUNCATED)
    x, _ = picture.path("density")
    assert x[0] == pytest.approx(0.1, abs=1e-3)
    assert x[-1] == pytest.approx(0.3, abs=1e-3)
    assert picture.atom() == []


def test_an_interval_that_contains_only_the_atom_has_no_width():
    picture = Picture(ALL_BUT_NONE)
    shaded, _ = picture.path("interval")
    assert ALL_BUT_NONE.interval() == (0.0, 0.0)
    assert np.ptp(shaded) == 0.0
    x, _ = picture.path("density")
    assert x[-1] > 0.1


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


class Curves:
    """The picture of what two rankings find, in rows across and in the plot's height up."""

    def __init__(self, consensus, learned):
        self.svg = ElementTree.fromstring(found_svg(consensus, learned))
        ticks = [node for node in self.svg.iter(f"{SVG}text") if node.get("class") == "tick"]
        self.ticks = {int(node.text): float(node.get("x")) for node in ticks}
        (axis,) = self.svg.iter(f"{SVG}line")
        self.bottom = float(axis.get("y1"))
        assert (float(axis.get("x1")), float(axis.get("x2"))) == (
            self.ticks[0],
            self.ticks[len(learned)],
        )
        self.width = (self.ticks[len(learned)] - self.ticks[0]) / len(learned)

    def path(self, name):
        """Numbers of rows, and pixels above the axis."""
        (node,) = (n for n in self.svg.iter(f"{SVG}path") if n.get("class") == name)
        numbers = np.array(node.get("d").replace("M", "").replace("L", "").split(), dtype=float)
        x, y = numbers.reshape(-1, 2).T
        return (x - self.ticks[0]) / self.width, self.bottom - y


@pytest.mark.parametrize(
    ("name", "found"), [("consensus", FOUND_BY_CONSENSUS), ("learned", FOUND_BY_LEARNED)]
)
def test_the_curves_rise_by_a_step_at_each_anomaly(name, found):
    curves = Curves(FOUND_BY_CONSENSUS, FOUND_BY_LEARNED)
    n_rows, height = curves.path(name)
    one = height.max() / 3
    assert (n_rows[0], height[0]) == (0.0, 0.0)
    assert (n_rows[-1], height[-1]) == pytest.approx((7.0, 3 * one))
    # To the tenth of a pixel.
    corners = {(i, f) for i, f in enumerate((0, *found))}
    corners |= {(i, f) for i, f in enumerate((0, *found)[:-1], start=1)}
    drawn = set(zip(n_rows.round(2).tolist(), (height / one).round(2).tolist(), strict=True))
    assert drawn == corners
    assert (np.diff(n_rows) >= 0.0).all()
    assert (np.diff(height) >= 0.0).all()
    # Each line goes right or up.
    assert ((np.diff(n_rows) == 0.0) | (np.diff(height) == 0.0)).all()
    assert height.max() > 100.0


def test_both_curves_end_at_the_same_point():
    curves = Curves(FOUND_BY_CONSENSUS, FOUND_BY_LEARNED)
    ends = [[axis[-1] for axis in curves.path(name)] for name in ("consensus", "learned")]
    assert ends[0] == ends[1]
    assert sorted(curves.ticks) == [0, 3, 7]


def test_the_curves_have_the_colours_of_the_legend():
    svg = Curves(FOUND_BY_CONSENSUS, FOUND_BY_LEARNED).svg
    colours = {node.get("class"): node.get("stroke") for node in svg.iter(f"{SVG}path")}
    squares = {node.get("class"): node.get("fill") for node in svg.iter(f"{SVG}rect")}
    assert colours == squares
    assert len(set(colours.values())) == 2
    words = [node.text for node in svg.iter(f"{SVG}text") if node.get("class") == "legend"]
    assert words == ["anomalies found, learned ranking", "consensus of the detectors"]


@pytest.mark.parametrize(
    ("n_rows", "halves"), [(7, "3 of 3 and the consensus 1"), (6, "2 of 3 and the consensus 1")]
)
def test_the_picture_of_both_rankings_in_words(n_rows, halves):
    # Half of 7 rows are the first 4.
    svg = Curves((0, 1, 1, 1, 3, 3, 3)[:n_rows], (1, 2, 2, 3, 3, 3, 3)[:n_rows]).svg
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == (
        f"Anomalies found among {n_rows} labelled rows. After half of them, the learned ranking "
        f"has found {halves}."
    )


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
    ticks = [(float(text.text.rstrip("%")) / 100, float(text.get("x"))) for text in axis]
    assert [share for share, _ in ticks] == [0.0, 0.1, 0.2]
    slope, start = np.polyfit(*np.transpose(ticks), 1)
    picture = ElementTree.fromstring(scale.picture(line))
    mark, interval = picture.findall(f"{SVG}line")
    ends = [float(each.get(name)) for each in (mark, interval) for name in ("x1", "x2")]
    expected = [0.14, 0.14, min(line.low, 0.26), min(line.high, 0.26)]
    np.testing.assert_allclose(ends, start + slope * np.array(expected), atol=0.11)
    # Beyond the end of the scale, an arrow takes the place of the point.
    points = [float(circle.get("cx")) for circle in picture.findall(f"{SVG}circle")]
    shares = [line.share] if line.share <= 0.26 else []
    np.testing.assert_allclose(points, start + slope * np.array(shares), atol=0.11)
    assert len(picture.findall(f"{SVG}path")) == (line is SMALL)
    assert {axis.get("width"), picture.get("width")} == {axis.get("width")}
