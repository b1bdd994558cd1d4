import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm._support.text import percent, spreadsheet_safe, terminal_safe
from gammagmm.cli.output import compare_posteriors
from gammagmm.posterior.betas import BetaMixture


def posterior(*parts, prob_zero=0.01):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T))


NARROW = posterior((0.99, 500.0, 9500.0))
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0))


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0%"), (0.0314, "3.1%"), (0.0004, "0.04%"), (1e-7, "below 0.001%"), (np.nan, "")],
)
def test_shares_in_per_cent(share, words):
    assert percent(share) == words


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-5.5", "-5.5"), ("-x", "'-x"), ("+1", "+1"), ("a", "a")],
)
def test_formulas_are_defused_and_numbers_kept(cell, safe):
    assert spreadsheet_safe(cell) == safe


def test_control_characters_are_written_out():
    assert terminal_safe("\x1b[31mred\x07 γ\n") == "\\x1b[31mred\\x07 γ\n"


def test_the_probability_of_exceeding_is_that_of_draws():
    n = 1_000_000
    first, second = NARROW.sample(n, 1), TWO_HUMPS.sample(n, 2)
    found = compare_posteriors(NARROW, TWO_HUMPS)
    share = np.mean(second > first)
    error = 4 * np.sqrt(share * (1 - share) / n)
    assert found["prob_b_above_a"] == pytest.approx(share, abs=error)
    assert found["prob_equal"] == pytest.approx(1e-4)
    assert sum(found[f"prob_{k}"] for k in ("b_above_a", "a_above_b", "equal")) == pytest.approx(
        1.0
    )
    none = GammaPosterior.degenerate()
    assert compare_posteriors(none, none)["prob_equal"] == 1.0
    assert compare_posteriors(none, NARROW)["prob_b_above_a"] == pytest.approx(0.99)
    assert compare_posteriors(NARROW, none)["prob_b_above_a"] == 0.0
