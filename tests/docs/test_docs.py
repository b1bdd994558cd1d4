"""The pages agree with the code, and the site is complete without a network.

``python -m tests.docs.test_docs`` runs the blocks of the pages and writes their output into them.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
import tomllib
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest

import gammagmm
from gammagmm import errors
from gammagmm.datasets import make_contaminated
from tests.support.command_line import gammagmm_here, write_csv
from tests.support.example_scripts import NEIGHBOURS
from tests.support.pyod_zoo import DEEP, SKIPPED, TABULAR
from tests.support.reliability_figures import figures, shown_figures
from tests.support.site import DOCS, ROOT, build_site
from tests.support.workbooks import xlsx

# These pages show scripts; test_examples and the tests of the neighbours run them.
SCRIPTS = {"examples", *NEIGHBOURS.values()}
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.stem not in SCRIPTS)
# A block of code and, if it follows directly, the block with its output.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n+```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)

QUESTIONS = (
    "Why must I specify the contamination at all?",
    "How sure can I be of the interval?",
    "Can it be 'auto'?",
    "What if the data are clean?",
    "Does it change the ranking, or only the threshold?",
    "What about new data?",
    "Can I use an ensemble of detectors?",
    "Are thresholds comparable across detectors?",
    "What do the probabilities mean?",
    "Why did two runs differ?",
)


def read(path):
    return path.read_text(encoding="utf-8")


def run_blocks(path):
    """Each block of the page and its output; the blocks share a namespace."""
    text, namespace = read(path), {"__name__": path.stem}
    for block in BLOCK.finditer(text):
        # With these empty lines, a traceback shows the line number of the page.
        above = "\n" * (text[: block.start(1)].count("\n"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(above + block[1], path, "exec"), namespace)
        yield block, printed.getvalue()


def _write_parquet(folder):
    """Write the files that the page on Dask reads."""
    folder.mkdir()
    rows = pd.DataFrame(make_contaminated(600, 4, 0.05, "local", random_state=2).X)
    for i, part in enumerate((rows[:400], rows[400:])):
        part.rename(columns=str).to_parquet(folder / f"{i}.parquet")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_block_runs_and_prints_what_the_page_shows(path, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    _write_parquet(tmp_path / "data")
    n_blocks = 0
    for block, printed in run_blocks(path):
        assert printed == (block[2] or ""), block[1]
        n_blocks += 1
    plt.close("all")
    assert n_blocks == read(path).count("```python")


def test_the_figures_on_reliability_are_those_of_the_long_runs():
    assert shown_figures() == figures()


def test_the_tests_named_in_the_page_on_reliability_exist():
    pages = "".join(read(path) for path in sorted((DOCS / "explanations").glob("reliability*.md")))
    cells = re.findall(r"\| (`[^|]*) \|$", pages, re.MULTILINE)
    named = [re.findall(r"`((?:[\w/]+\.py::)?(?:\w+::)?)(\w+)`", cell) for cell in cells]
    assert sum(map(len, named)) > 30
    text = ""
    for cell in named:
        for where, name in cell:
            if where:  # a name without a file belongs to the file before it
                text = read(ROOT / "tests" / where.partition("::")[0])
            kinds = [*where.split("::")[1:-1], name]
            assert all(re.search(rf"(def|class) {kind}\b", text) for kind in kinds), name


def test_the_page_names_each_tabular_detector_of_pyod_that_is_not_tested():
    page = read(DOCS / "guides" / "pyod.md")
    table = re.search(r"\| detector \| why it is not tested \|\n(.*?)\n\n", page, re.DOTALL)[1]
    untested = {name for kind in ("labels", "combo", "suod") for name in SKIPPED[kind]}
    assert untested <= set(re.findall(r"`(\w+)`", table))
    assert not set(re.findall(r"`([A-Z]\w+)`", table)) & (set(TABULAR) | set(DEEP))


def test_the_first_page_needs_few_lines_to_a_fitted_detector():
    first = BLOCK.search(read(DOCS / "index.md"))[1].replace("\n\n", "\n").splitlines()
    assert len(first) <= 7
    assert "gammagmm" in first[1]
    assert "KNN(contamination=estimate_contamination(" in first[-1]


def test_pages_begin_with_a_sentence_that_says_what_they_are_for():
    for path in PAGES:
        title, begin = read(path).split("\n\n")[:2]
        assert re.fullmatch(r"# \S.*", title), path
        if path.parent.name != "reference":  # there, docstrings say it
            assert re.match(r"(\*\*)?[A-Z`]\S* ", begin), path


def test_pages_whose_code_needs_pandas_say_so():
    """pandas is neither a requirement nor an extra."""
    needs = re.compile(r"pandas|\.to_frame\(|\.by_group\(")
    pages = [
        path for path in PAGES if needs.search("".join(b[1] for b in BLOCK.finditer(read(path))))
    ]
    assert len(pages) >= 4
    for path in [*pages, DOCS / "start" / "install.md"]:
        assert "pandas" in BLOCK.sub("", read(path)), path


def test_the_commands_of_the_first_pages_run_from_top_to_bottom(tmp_path):
    data = make_contaminated(200, 3, 0.05, "clustered", random_state=2).X.tolist()
    columns = dict(zip("abc", zip(*data, strict=True), strict=True))
    write_csv(tmp_path / "rows.csv", columns)
    write_csv(tmp_path / "tomorrow.csv", {name: values[:60] for name, values in columns.items()})
    rows = [[f"C{i}", "east" if i % 2 else "west", *row] for i, row in enumerate(data)]
    sheet = [["customer", "region", *columns], *rows]
    (tmp_path / "rows.xlsx").write_bytes(xlsx({"Sheet1": sheet}))
    (tmp_path / "gammagmm.toml").write_text('detectors = "KNN,LOF"\nruns = 1\n')
    page = read(DOCS / "start" / "five-minutes.md")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "gammagmm"
        arguments += ["--terminal"] * (arguments[0] == "label")  # in place of the page
        done = gammagmm_here(*arguments, cwd=tmp_path, stdin="n\n" * 30 + "q\n")
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_the_questions_are_answered():
    assert re.findall(r"^## (.*)$", read(DOCS / "explanations" / "faq.md"), re.MULTILINE) == list(
        QUESTIONS
    )


def test_the_table_of_extras_is_that_of_the_package():
    table = re.findall(r"^\| `(\w+)` \| (`.*?`) \|", read(DOCS / "start" / "install.md"), re.M)
    shown = {extra: re.findall(r"`([\w-]+)`", packages) for extra, packages in table}
    extras = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    (every,) = extras.pop("all")
    assert set(re.findall(r"\w+", every)[1:]) == shown.keys() - {"mcp", "notebook", "peers"}
    assert shown == {
        extra: [re.match(r"[\w-]+", one)[0] for one in packages]
        for extra, packages in extras.items()
    }


def version_rows():
    """Rows of the table of versions: library and version."""
    table = read(DOCS / "guides" / "libraries.md").split("## Tested versions")[1]
    return re.findall(r"^\| ([\w-]+) \| (\d[\w.]*) \|", table, re.MULTILINE)


def pinned_versions(path):
    """Versions in a file of constraints, by the lower-case names of the libraries."""
    pins = re.findall(r"^([\w.-]+)==(\S+)$", read(path), re.MULTILINE)
    return {name.lower(): number for name, number in pins}


def test_the_table_of_versions_is_that_of_the_constraints():
    rows = version_rows()
    assert len(rows) == 12
    pinned = pinned_versions(ROOT / "constraints.txt")
    assert dict(rows) == {name: pinned[name.lower()] for name, _ in rows}


def test_the_table_of_versions_is_that_of_the_installed_libraries():
    rows = dict(version_rows())
    installed = {name: version(name) for name in rows}
    oldest = pinned_versions(ROOT / "constraints-oldest.txt")
    if installed == {name: oldest[name.lower()] for name in rows}:
        pytest.skip("the oldest versions are installed; the page shows the newest")
    assert rows == installed


class Page(HTMLParser):
    """The links, assets and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.assets, self.anchors = [], [], {""}
        self.feed(read(path))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in {"next", "prev", "canonical"}:
            self.assets.append(values["href"])
        elif values.get("src"):
            self.assets.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages and folder of the built site."""
    folder = build_site(tmp_path_factory.mktemp("site"))
    return {
        path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")
    }, folder


def test_every_page_is_built(site):
    pages, _ = site
    sources = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {name.replace(".html", ".md") for name in pages} - {"404.md"} == sources


def in_navigation(entries):
    """Paths of the pages below these entries of the navigation."""
    for entry in entries:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else in_navigation(target)


SITE = tomllib.loads(read(ROOT / "zensical.toml"))["project"]
NAVIGATION = list(in_navigation(SITE["nav"]))


def test_every_page_is_in_the_navigation_once():
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(NAVIGATION) == sorted(pages)


def test_every_page_is_in_llms_txt_and_exists_as_markdown(site):
    _, folder = site
    line = re.compile(r"^- \[[^]]+\]\(<https://[^/]+/en/latest/(.*?)>\)", re.MULTILINE)
    listed = line.findall(read(folder / "llms.txt"))
    assert sorted(listed) == sorted(NAVIGATION)
    assert not re.findall(r"^- .*>\)$", read(folder / "llms.txt"), re.MULTILINE), "no description"
    sections = SITE["plugins"]["llmstxt"]["sections"].values()
    for described in (
        entry for entries in sections for entry in entries if isinstance(entry, dict)
    ):
        ((name, words),) = described.items()
        assert f"/{name}>): {words}\n" in read(folder / "llms.txt")
    whole = read(folder / "llms-full.txt")
    for name in NAVIGATION:
        title = re.search(r"^# (.*)$", read(DOCS / name), re.M)[1]
        assert read(folder / name).startswith(f"# {title}")
        assert f"# {title}\n" in whole


def test_every_internal_link_has_a_target(site):
    pages, folder = site
    n_links = 0
    for name, page in pages.items():
        if name == "404.html":  # it has absolute links, because it is served at any depth
            continue
        for link in page.links + page.assets:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            assert target.is_file(), f"{name} refers to {link}"
            place = target.resolve().relative_to(folder.resolve()).as_posix()
            if place in pages:
                assert unquote(parts.fragment) in pages[place].anchors, f"{name} refers to {link}"
            n_links += 1
    assert n_links > 100


def test_files_of_the_repository_that_pages_link_to_exist():
    home = re.escape(tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["urls"]["Homepage"])
    linked = re.findall(rf"\]\({home}/blob/main/([^)#]+)", "".join(map(read, PAGES)))
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "SECURITY.md"} <= set(linked)
    assert all((ROOT / name).is_file() for name in linked)


def test_no_page_loads_anything_from_elsewhere(site):
    pages, folder = site
    for name, page in pages.items():
        remote = [asset for asset in page.assets if urlsplit(asset).netloc]
        assert not remote, f"{name} loads {remote}"
    for sheet in folder.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", read(sheet)), sheet


def test_the_reference_has_every_public_name(site):
    pages, _ = site
    anchors = set().union(
        *(p.anchors for name, p in pages.items() if name.startswith("reference/"))
    )
    assert {f"gammagmm.{name}" for name in gammagmm.__all__} <= anchors
    assert {f"gammagmm.errors.{name}" for name in errors.__all__} <= anchors
    for method in ("fit", "predict", "predict_proba", "suggest", "to_frame"):
        assert f"gammagmm.GammaGMM.{method}" in anchors


def test_the_reference_shows_no_private_name(site):
    _, folder = site
    # Names with underscores in front, names of constants and bases, and paths of private modules.
    private = re.compile(
        r"__\w+__|(?<!\w)_[a-z]\w*|BaseEstimator|gammagmm\.(?!datasets|errors|toml)\w+"
    )
    written = {path.stem for path in (DOCS / "reference").glob("*.md") if "\n::: " in read(path)}
    assert len(written) > 15
    for page in written:
        article = re.search(
            r"<article.*?</article>", read(folder / "reference" / f"{page}.html"), re.DOTALL
        )
        text = unescape(re.sub(r"<[^>]*>", "", article[0]))
        assert private.findall(text) == [], page
        assert " - like" not in text, "array-like alone is read as a difference"


def rewrite(path):
    """Write the current output of the blocks into the page."""
    text = read(path)
    for block, printed in reversed(list(run_blocks(path))):
        if block[2] is not None:
            text = text[: block.start(2)] + printed + text[block.end(2) :]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        _write_parquet(Path("data"))
        for page in PAGES:
            rewrite(page)
