import inspect
import subprocess
import sys

import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm.errors import MissingExtraError
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.posterior.arviz import arviz_arguments
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.track_record import load_reference

N_DRAWS = 20_000


@pytest.fixture(scope="module", autouse=True)
def arviz():
    """Imported only where these tests run: it takes longer than all of them."""
    return pytest.importorskip("arviz")


def is_new(arviz):
    return int(arviz.__version__.split(".")[0]) >= 1


@pytest.fixture(scope="module")
def posterior():
    return GammaPosterior(0.2, BetaMixture(*np.array([[0.5, 0.3], [3.0, 30.0], [90.0, 70.0]])))


@pytest.fixture(scope="module")
def converted(posterior):
    return posterior.to_arviz(N_DRAWS, random_state=3)


def test_it_is_what_the_installed_version_works_with(converted, arviz):
    import xarray

    expected = xarray.DataTree if is_new(arviz) else arviz.InferenceData
    assert isinstance(converted, expected)
    gamma = converted["posterior"]["gamma"]
    assert gamma.dims == ("chain", "draw")
    assert gamma.shape == (1, N_DRAWS)
    assert converted["posterior"].attrs["inference_library"] == "gammagmm"


def test_the_draws_are_the_posteriors_and_keep_the_atom(converted, posterior):
    draws = converted["posterior"]["gamma"].values[0]
    for x in (0.0, 0.03, 0.1, 0.3):
        p = float(posterior.cdf(x))
        assert abs(np.mean(draws <= x) - p) <= 4.0 * np.sqrt(p * (1 - p) / N_DRAWS)
    assert abs(np.mean(draws == 0.0) - 0.2) <= 4.0 * np.sqrt(0.16 / N_DRAWS)
    again = posterior.to_arviz(N_DRAWS, random_state=3)["posterior"]["gamma"].values[0]
    np.testing.assert_array_equal(draws, again)
    assert posterior.to_arviz()["posterior"]["gamma"].shape == (1, 4000)


def test_arviz_summarises_it(converted, posterior, arviz):
    summary = arviz.summary(converted, round_to="none" if is_new(arviz) else None).loc["gamma"]
    error = posterior.std / np.sqrt(N_DRAWS)
    assert float(summary["mean"]) == pytest.approx(posterior.mean, abs=4.0 * error)
    assert float(summary["sd"]) == pytest.approx(posterior.std, rel=0.03)
    # Independent draws: the effective size is their number, within its own error.
    assert float(summary["ess_bulk"]) == pytest.approx(N_DRAWS, rel=0.1)


@pytest.mark.parametrize(
    "zero",
    [
        GammaPosterior.degenerate(),
        labelled_posterior(LabelCounts(100, 100, 0, 0, 0), load_reference()),
    ],
    ids=["no solution", "all rows labelled normal"],
)
def test_the_point_mass_at_zero_is_all_zeros(zero):
    draws = zero.to_arviz(50, random_state=0)["posterior"]["gamma"].values
    assert draws.tolist() == [[0.0] * 50]


def old_from_dict(posterior=None, *, prior=None, attrs=None, **kwargs):
    """The part that matters of the signature of ArviZ 0.17 to 0.23."""


def new_from_dict(
    data,
    *,
    name=None,
    sample_dims=None,
    save_warmup=None,
    index_origin=None,
    coords=None,
    dims=None,
    pred_dims=None,
    pred_coords=None,
    check_conventions=True,
    attrs=None,
):
    """The documented signature of ArviZ 1.0 to 1.3."""


def test_both_versions_are_called_as_they_document_it():
    draws = np.array([0.0, 0.1, 0.2])
    arguments, options = arviz_arguments(new_from_dict, draws)
    bound = inspect.signature(new_from_dict).bind(*arguments, **options).arguments
    # Groups by name, variables by name, (chain, draw) first; `attrs` by group.
    assert bound["data"]["posterior"]["gamma"].shape == (1, 3)
    assert bound["attrs"].keys() == bound["data"].keys() == {"posterior"}
    arguments, options = arviz_arguments(old_from_dict, draws)
    bound = inspect.signature(old_from_dict).bind(*arguments, **options).arguments
    assert bound["posterior"]["gamma"].tolist() == [[0.0, 0.1, 0.2]]
    assert bound["kwargs"]["posterior_attrs"]["inference_library"] == "gammagmm"


def test_the_installed_version_has_the_signature_assumed(arviz):
    installed = inspect.signature(arviz.from_dict).parameters
    assumed = inspect.signature(new_from_dict if is_new(arviz) else old_from_dict).parameters
    assert set(assumed) <= set(installed)
    assert ("posterior" in installed) is not is_new(arviz)


def test_without_arviz_the_error_says_what_to_install(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    words = r"to_arviz needs ArviZ, which is not installed\. Run: pip install 'gammagmm\[arviz\]'"
    with pytest.raises(MissingExtraError, match=words):
        posterior.to_arviz()


def test_an_arviz_that_is_broken_is_not_called_missing(tmp_path):
    (tmp_path / "arviz.py").write_text("import a_package_that_arviz_lacks")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from gammagmm import GammaPosterior; GammaPosterior.degenerate().to_arviz()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ModuleNotFoundError: No module named 'a_package_that_arviz_lacks'" in done.stderr


def test_an_invalid_number_of_draws_is_refused(posterior):
    with pytest.raises(ValueError, match="n_draws must be at least 1, got 0"):
        posterior.to_arviz(0)
    with pytest.raises(TypeError, match=r"n_draws must be a whole number, got 2\.5"):
        posterior.to_arviz(2.5)
