import json
from importlib.resources import files

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaPosterior
from gammagmm.posterior.track_record import load_track_record


@pytest.fixture(scope="module")
def content():
    text = files("gammagmm.posterior").joinpath("track_record.json").read_text(encoding="utf-8")
    return json.loads(text)


def test_it_is_what_the_file_says(content):
    record = load_track_record()
    assert record.n_tables == content["n_tables"]
    assert [vars(level) for level in record.levels] == content["levels"]
    assert record.held() == record.held(0.9)
    assert record.held(0.5) < record.held(0.9) < 0.9
    assert record.held_30_labels > record.held()


def test_the_reference_is_the_mixture_in_the_file(content):
    reference, parts = GammaPosterior.reference(), content["reference"]
    shares = np.linspace(0.0, 1.0, 101)
    triples = zip(parts["weights"], parts["a"], parts["b"], strict=True)
    expected = sum(weight * stats.beta(a, b).cdf(shares) for weight, a, b in triples)
    np.testing.assert_allclose(reference.cdf(shares), expected, atol=1e-12)
    assert expected[-1] == pytest.approx(1.0)
    assert reference.prob_zero == 0.0
    assert reference.n_labels == 0
