"""The files around the package agree with pyproject.toml and with the Makefile.

``python -m tests.contracts.test_repository`` writes the version and the requirements of
pyproject.toml into CITATION.cff, codemeta.json and the conda recipe.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gammagmm.cli.output import EXTRA_OF

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").iterdir())
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
"""Libraries that conda-forge has under another name."""


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


PYPROJECT = tomllib.loads(read("pyproject.toml"))
PROJECT = PYPROJECT["project"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"]]
PYTHON_MIN = PROJECT["requires-python"].removeprefix(">=")


def codemeta_requirements():
    """The requirements as codemeta.json states them."""
    return [
        {"@type": "SoftwareApplication", "name": needed.name, "version": str(needed.specifier)}
        for needed in REQUIREMENTS
    ]


def conda_requirements():
    """The requirements as the conda recipe states them."""
    names = [canonicalize_name(needed.name) for needed in REQUIREMENTS]
    return [
        f"{CONDA_NAMES.get(name, name)} {needed.specifier}"
        for name, needed in zip(names, REQUIREMENTS, strict=True)
    ]


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["title"] == PROJECT["name"]
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]


def test_the_preferred_citation_is_that_of_the_readme():
    paper = yaml.safe_load(read("CITATION.cff"))["preferred-citation"]
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},?$", read("README.md"), re.MULTILINE))
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert fields["title"] == paper["title"]
    assert fields["author"].replace('{\\"u}', "ü") == " and ".join(names)
    assert fields["booktitle"] == paper["collection-title"]
    assert int(fields["year"]) == paper["year"]


def test_the_changelog_begins_with_this_version_and_its_date():
    date = yaml.safe_load(read("CITATION.cff"))["date-released"].isoformat()
    headings = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0].startswith(f"{PROJECT['version']} ({date})")
    assert json.loads(read("codemeta.json"))["datePublished"] == date


def test_codemeta_is_of_this_version():
    codemeta = json.loads(read("codemeta.json"))
    urls = PROJECT["urls"]
    expected = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": PROJECT["name"],
        "description": PROJECT["description"],
        "version": PROJECT["version"],
        "license": f"https://spdx.org/licenses/{PROJECT['license']}",
        "author": [{"@type": "Organization"} | author for author in PROJECT["authors"]],
        "codeRepository": urls["Homepage"],
        "issueTracker": urls["Issues"],
        "softwareHelp": {"@id": urls["Documentation"]},
        "releaseNotes": urls["Changelog"],
        "keywords": PROJECT["keywords"],
        "runtimePlatform": f"Python {PROJECT['requires-python']}",
        "softwareRequirements": codemeta_requirements(),
    }
    assert {name: codemeta[name] for name in expected} == expected


def test_the_conda_recipe_has_the_same_requirements():
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    assert recipe["context"] == {"version": PROJECT["version"], "python_min": PYTHON_MIN}
    assert recipe["package"]["name"] == PROJECT["name"]
    backend = PYPROJECT["build-system"]["requires"]
    assert recipe["requirements"]["host"] == ["python ${{ python_min }}.*", *backend, "pip"]
    python, *others = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert others == conda_requirements()
    commands = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert about["repository"] == PROJECT["urls"]["Homepage"]


def test_the_command_info_knows_the_packages_of_each_extra():
    extras = PROJECT["optional-dependencies"]
    pairs = [(Requirement(line).name, extra) for extra in extras for line in extras[extra]]
    assert {pair for pair in pairs if pair[1] != "all"} == {*EXTRA_OF.items(), ("pyarrow", "dask")}


def test_each_version_of_python_that_is_claimed_is_tested_on_three_systems():
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    jobs = yaml.safe_load(read(".github/workflows/tests.yml"))["jobs"]
    matrix = jobs["quick"]["strategy"]["matrix"]
    assert matrix["python"] == claimed
    assert claimed[0] == PYTHON_MIN
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


def commands_of(workflow):
    """Each command of a workflow; a target from the matrix gives one command for each target."""
    for job in workflow["jobs"].values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        for step in job["steps"]:
            if "run" in step:
                yield from {step["run"].replace('"$TARGET"', target) for target in targets}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_only_call_make_targets(path):
    targets = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)[1].split()
    commands = list(commands_of(yaml.safe_load(path.read_text(encoding="utf-8"))))
    assert commands
    for command in commands:
        make, *words = command.split()
        assert make == "make"
        assert {word for word in words if "=" not in word} <= set(targets)


def test_a_release_is_built_without_other_tools_and_published_after_the_tests():
    workflow = yaml.safe_load(read(".github/workflows/release.yml"))
    jobs = workflow["jobs"]
    steps = [step.get("run", step.get("uses", "").split("@")[0]) for step in jobs["build"]["steps"]]
    upload = "actions/upload-artifact"
    assert steps[2:] == ["make dist", upload, "make check-dist", "make quick"]
    assert jobs["publish"]["needs"] == "build"
    assert "PIP_EXTRA_INDEX_URL" not in workflow.get("env", {})


def test_every_action_is_pinned_to_one_commit():
    used = re.findall(r"uses: (.*)", "\n".join(path.read_text("utf-8") for path in WORKFLOWS))
    pins = [re.fullmatch(r"([\w-]+/[\w-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+", u) for u in used]
    assert used
    assert all(pins), used
    assert len({pin[1] for pin in pins}) == len(set(used)), "one action at two versions"


def test_the_hooks_call_the_tools_of_make_lint():
    recipe = re.search(r"^lint: install\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)[1]
    tools = re.findall(r"^\t\$\(BIN\)/([\w-]+)", recipe, re.MULTILINE)
    (local,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    called = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert len(tools) >= 7
    assert set(tools) <= called
    assert {hook["language"] for hook in local["hooks"]} == {"system"}


def test_each_ignored_check_has_its_reason_in_contributing():
    ignored = PYPROJECT["tool"]["repo-review"]["ignore"]
    rows = re.findall(r"^\| (`(?:PY|PC|SEC)\d+`.*?) \| .+ \|$", read("CONTRIBUTING.md"), re.M)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(ignored)


def pages():
    """Markdown files and issue forms that GitHub shows."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *TEMPLATES])


def anchors(path):
    """Anchors of the headings of a Markdown file, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_files_that_github_shows_link_to_existing_files_and_headings(path):
    blob = f"{PROJECT['urls']['Homepage']}/blob/main/"
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in link or link.startswith(blob):
            name, _, anchor = link.removeprefix(blob).partition("#")
            target = ROOT / name if name else path
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def replaced(name, pattern, text):
    """Write `text` in place of what `pattern` matches in a file."""
    found, n = re.subn(pattern, lambda _: text, read(name), count=1, flags=re.MULTILINE)
    assert n == 1, name
    (ROOT / name).write_text(found, encoding="utf-8")


def write():
    version = PROJECT["version"]
    replaced("CITATION.cff", r"^version: .*$", f"version: {version}")
    replaced("recipe/recipe.yaml", r"^  version: \d.*$", f"  version: {version}")
    needed = ["python >=${{ python_min }}", *conda_requirements()]
    run = "".join(f"    - {line}\n" for line in needed)
    replaced("recipe/recipe.yaml", r"^  run:\n(?:    - .*\n)+", f"  run:\n{run}")
    codemeta = json.loads(read("codemeta.json"))
    codemeta |= {"version": version, "softwareRequirements": codemeta_requirements()}
    text = json.dumps(codemeta, indent=2, ensure_ascii=False)
    (ROOT / "codemeta.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
