import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm._support.text import percent
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import known_sentence, rows_sentence, sentence, shape_words


def posterior(*parts, prob_zero=0.01):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T))


NARROW = posterior((0.99, 500.0, 9500.0))
WIDE = posterior((0.99, 2.0, 38.0))
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0))


def test_one_narrow_hump_is_two_sentences_and_needs_no_words_on_its_shape():
    low, high = NARROW.interval()
    assert sentence(NARROW) == (
        f"About 5.0% of the rows are anomalies (90% interval {low:.1%} to {high:.1%}). The "
        "probability of no anomalies is 1.0%; the probability of more than 15% anomalies is below "
        "0.001%."
    )
    assert shape_words(NARROW) == ""


def test_a_wide_interval_is_called_wide():
    low, high = WIDE.interval()
    assert f"any share from {percent(low)} to {percent(high)} is plausible" in shape_words(WIDE)


def test_several_humps_are_named():
    assert "either about 2.0% or about 9.0%" in shape_words(TWO_HUMPS)
    assert sentence(TWO_HUMPS).endswith("The posterior density has 2 humps, at 2.0% and 9.0%.")


@pytest.mark.parametrize("words", [sentence, shape_words])
def test_no_estimate_does_not_mean_clean_data(words):
    found = words(GammaPosterior.degenerate())
    assert found.startswith("There is no estimate: ")
    assert found.endswith("This does not mean that the data are clean.")


def test_rows_flagged():
    assert rows_sentence(0, 50) == "None of 50 rows is flagged."
    assert rows_sentence(1, 50) == "1 of 50 rows is flagged."
    assert rows_sentence(1200, 45_000) == "1,200 of 45,000 rows are flagged."


def test_labelled_rows_are_counted_with_the_estimate_before_them():
    low, high = NARROW.interval()
    assert known_sentence(1200, 1, NARROW) == (
        "This estimate uses 1,200 labelled rows (1 anomaly). Without labels, it was 5.0% "
        f"({low:.1%} to {high:.1%})."
    )
    assert known_sentence(1, 0, GammaPosterior.degenerate()) == (
        "This estimate uses 1 labelled row (0 anomalies). Without labels, there was no estimate."
    )
