import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm._support.text import percent, spreadsheet_safe, terminal_safe
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import rows_sentence, sentence, shape_words


def posterior(*parts, prob_zero=0.01):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T))


NARROW = posterior((0.99, 500.0, 9500.0))
WIDE = posterior((0.99, 2.0, 38.0))
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0))


def test_a_narrow_hump_needs_no_word():
    assert shape_words(NARROW) == ""
    assert sentence(NARROW).startswith("About 5.0% of the rows are anomalies (90% interval 4.6% to")


def test_a_wide_one_is_called_wide():
    low, high = WIDE.interval()
    assert f"anything from {percent(low)} to {percent(high)} is plausible" in shape_words(WIDE)


def test_several_humps_are_named():
    assert "either about 2.0% or about 9.0%" in shape_words(TWO_HUMPS)
    assert sentence(TWO_HUMPS).endswith("The density has 2 humps, at 2.0% and 9.0%.")


def test_no_answer_is_no_clean_bill():
    assert "This does not mean that the data are clean" in shape_words(GammaPosterior.degenerate())


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0%"), (0.0314, "3.1%"), (0.0004, "0.04%"), (1e-7, "below 0.001%"), (np.nan, "")],
)
def test_shares_in_per_cent(share, words):
    assert percent(share) == words


def test_rows_flagged():
    assert rows_sentence(0, 50) == "None of 50 rows is flagged."
    assert rows_sentence(1, 50) == "1 of 50 rows is flagged."
    assert rows_sentence(1200, 45_000) == "1,200 of 45,000 rows are flagged."


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-5.5", "-5.5"), ("-x", "'-x"), ("+1", "+1"), ("a", "a")],
)
def test_formulas_are_defused_and_numbers_kept(cell, safe):
    assert spreadsheet_safe(cell) == safe


def test_control_characters_are_written_out():
    assert terminal_safe("\x1b[31mred\x07 γ\n") == "\\x1b[31mred\\x07 γ\n"
