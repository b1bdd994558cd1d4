"""The columns in which a row stands out: by hand, and on made-up rows with known odd columns."""

import numpy as np
import pytest

from gammagmm.estimator.reasons import Reason, flag_words, reason_words, usual_values
from gammagmm.table.encoder import fit_encoder

NORMAL_QUARTILE, NORMAL_DECILE = 0.6745, 1.2816
LEAST_HITS = 0.95


def first_columns(X, rows, n_columns=1):
    usual = usual_values(X, range(X.shape[1]))
    return [[int(r.column) for r in reasons[:n_columns]] for reasons in usual.reasons(X[rows])]


def test_the_usual_range_and_the_deviations_by_hand():
    # 0, ..., 80 have the deciles 8 and 72, the quartiles 20 and 60 and the median 40.
    values = np.arange(81.0)
    usual = usual_values(np.column_stack([values, values**3]), ["a", "b"])
    below = 32.0 / NORMAL_DECILE
    assert usual.unit.tolist() == [64.0, 2.0**18]
    np.testing.assert_allclose(usual.below[0] * 64, below, rtol=1e-12)
    np.testing.assert_allclose(usual.above[0] * 64, below, rtol=1e-12)
    assert (usual.low[0], usual.high[0]) == (0.0, 80.0)
    quartile, decile = (60**3 - 40**3) / NORMAL_QUARTILE, (72**3 - 40**3) / NORMAL_DECILE
    above = min(decile, 1.5 * quartile)
    np.testing.assert_allclose(usual.above[1] * 2**18, above, rtol=1e-12)
    limit = 40**3 + 2 * above
    assert usual.high[1] == max(v for v in values**3 if v <= limit)
    ((one, other),) = usual.reasons(np.array([[-60.0, 2e6]]))
    assert (one.column, other.column) == ("b", "a")
    assert one.deviations == pytest.approx((2e6 - 40**3) / above)
    assert other.deviations == pytest.approx(-100 / below)


def test_a_tail_that_a_fifth_of_the_rows_share_is_limited_by_the_quartiles():
    values = np.concatenate([np.arange(80.0), np.full(20, 5000.0)])
    usual = usual_values(values[:, None], ["a"])
    median, quartile = np.quantile(values, [0.5, 0.75])
    expected = 1.5 * (quartile - median) / NORMAL_QUARTILE
    np.testing.assert_allclose(usual.above * usual.unit, [expected], rtol=1e-12)
    assert usual.high.tolist() == [79.0]
    ((reason,),) = usual.reasons(np.array([[5000.0]]))
    assert reason.words == "a 5,000 is far above the usual 0 to 79"


def test_a_column_without_a_range_uses_the_standard_deviation():
    values = np.zeros(100)
    values[:4] = [1, 2, 3, 4]
    usual = usual_values(values[:, None], ["n"])
    ((reason,),) = usual.reasons(np.array([[5.0]]))
    assert reason.deviations == pytest.approx(5.0 / values.std())
    assert reason.words == "n 5 is far above the usual 0 to 1"
    alone = Reason("n", 5.0, 9.0, 0.0, 0.0)
    assert alone.words == "n 5 is far above the usual 0"


def test_one_of_two_values_is_a_reason_where_it_is_rare():
    X = np.zeros((100, 3))
    X[:4, 0], X[:5, 1], X[:97, 2] = 1.0, 1.0, 1.0
    usual = usual_values(X, ["is_new", "is_old", "is_open"])
    ((one, other),) = usual.reasons(np.array([[1.0, 1.0, 0.0]]))
    assert other.words == "is_new is 1, which is rare (4.0% of the rows)"
    assert other.deviations == pytest.approx(1.0 / np.sqrt(0.04 * 0.96))
    assert one.words == "is_open is 0, which is rare (3.0% of the rows)"
    ((new,),) = usual.reasons(np.array([[0.0, 7.0, 1.0]]))
    assert new.words == "is_old 7 is far above the usual 0 to 1"


def test_an_encoded_text_is_named_once_by_its_text():
    X = np.zeros((100, 2))
    X[:98, 0], X[98:99, 1] = 1.0, 1.0
    texts = {"country=DE": ("country", "DE"), "country=B=R": ("country", "B=R")}
    usual = usual_values(X, list(texts), texts)
    assert [reason_words(each) for each in usual.reasons(X[[0, 98, 99]])] == [
        "",
        "country is B=R, which is rare (1.0% of the rows)",
        "country is not DE, which is rare (2.0% of the rows)",
    ]


def test_a_name_with_an_equals_sign_is_a_name():
    X = (np.arange(100.0) < 2.0)[:, None].astype(float)
    (reasons,) = usual_values(X, ["flag=on"]).reasons(X[:1])
    assert [(each.column, each.text) for each in reasons] == [("flag=on", None)]


def test_a_constant_column_is_never_a_reason():
    X = np.column_stack([np.full(50, 3.0), np.arange(50.0), np.zeros(50)])
    usual = usual_values(X, ["a", "b", "c"])
    assert [r.column for r in usual.reasons(np.array([[9.0, 1e9, 1.0]]))[0]] == ["b"]


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e9, 1e307])
def test_reasons_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    usual, other = usual_values(X, "abcd"), usual_values(X * unit, "abcd")
    for one, two in zip(usual.reasons(X), other.reasons(X * unit), strict=True):
        assert [r.column for r in one] == [r.column for r in two]
        deviations = [[r.deviations for r in each] for each in (one, two)]
        np.testing.assert_allclose(*deviations, rtol=1e-9)
    far = other.reasons(np.full((1, 4), 1.7e308))[0]
    assert len(far) == 3
    assert np.isfinite([r.deviations for r in far]).all()


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (5400.0, 20.0, 80.0, "a 5,400 is far above the usual 20 to 80"),
        (80.0001, 20.25, 80.0, "a 80.0001 is far above the usual 20.25 to 80"),
        (-12345678.9, 0.5, 9999.99, "a -12,345,679 is far below the usual 0.5 to 10,000"),
        (3e20, -2e-7, 1e15, "a 3e+20 is far above the usual -2e-07 to 1e+15"),
    ],
)
def test_numbers_in_words(value, low, high, words):
    assert Reason("a", value, 9.0, low, high).words == words
    assert Reason("a", value, 3.0, low, high).words == words.replace("far ", "")


def test_at_most_three_columns_are_named_the_farthest_first():
    X = np.random.default_rng(1).normal(size=(500, 6))
    new = np.array([[10.0, 30.0, 0.0, -40.0, 20.0, 15.0]])
    (reasons,) = usual_values(X, "abcdef").reasons(new)
    assert [r.column for r in reasons] == ["d", "b", "e"]
    distances = [abs(r.deviations) for r in reasons]
    assert distances == sorted(distances, reverse=True)


def made_tables(rng, n_rows, n_columns):
    """Ordinary rows of several kinds, by name."""
    shape = (n_rows, n_columns)
    normal = rng.normal(size=shape)
    return {
        "normal": normal,
        "heavy tails": rng.standard_t(4, size=shape),
        "skewed": np.exp(0.8 * rng.normal(size=shape)),
        "integer": rng.poisson(rng.uniform(1, 30, n_columns), size=shape).astype(float),
        "mixed units": normal * 10.0 ** rng.uniform(-6, 6, n_columns),
        "correlated": normal + 2.0 * rng.normal(size=(n_rows, 1)),
    }


@pytest.mark.parametrize("share", [0.02, 0.1])
@pytest.mark.parametrize("kind", made_tables(np.random.default_rng(0), 2, 1))
def test_the_first_column_named_is_one_of_the_odd_ones(kind, share):
    hits = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = made_tables(rng, 1000, 10)[kind]
        rows = np.arange(int(share * 1000))
        low, median, high = np.quantile(X, [0.001, 0.5, 0.999], axis=0)
        odd = [rng.choice(10, rng.integers(1, 4), replace=False) for _ in rows]
        for row, columns in zip(rows, odd, strict=True):
            end = np.where(rng.random(len(columns)) < 0.5, low[columns], high[columns])
            X[row, columns] = median[columns] + 2.0 * (end - median[columns])
        first = first_columns(X, rows)
        hits += [bool(set(f) & set(columns)) for f, columns in zip(first, odd, strict=True)]
    assert np.mean(hits) >= LEAST_HITS


def test_values_that_are_odd_only_together_are_not_seen():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(1000, 1))
    X = common + 0.1 * rng.normal(size=(1000, 2))
    X = np.column_stack([X, rng.normal(size=(1000, 3))])
    X[:50, 0] *= -1.0  # columns 0 and 1 contradict each other; each value alone is usual
    hits = [bool(set(first) & {0, 1}) for first in first_columns(X, np.arange(50))]
    assert np.mean(hits) < 0.3


def test_a_flagged_row_without_an_unusual_value_has_an_unusual_combination(rng):
    X = rng.normal(size=(50, 2))
    usual = usual_values(X, ["a", "b"])
    nothing, above = usual.reasons(np.array([[0.0, 0.0], [9.0, 0.0]]))
    assert flag_words(nothing) == "no single value is unusual; the combination of values is"
    assert flag_words(above) == reason_words(above)
    assert reason_words(above).startswith("a 9 is far above")


def words_of(values):
    return {value.value_words for value in values}


def test_the_values_of_a_row_in_words():
    a = np.arange(101.0)
    cities = np.column_stack([np.arange(101) % 3 == k for k in range(3)])
    texts = [("city", "Bonn"), ("city", "Köln"), ("city", "Ulm"), ("size", "big")]
    encoded = {"=".join(pair): pair for pair in texts}
    names = ["a", *encoded, "one"]
    X = np.column_stack([a, cities, np.arange(101) % 2, np.ones(101)])
    first, second = map(words_of, usual_values(X, names, encoded).described(X[[20, 99]]))
    assert first == {"a 20", "city Ulm", "size not big", "one 1"}
    assert second == {"a 99", "city Bonn", "size big", "one 1"}


def test_the_text_without_a_column_of_its_own_is_named():
    rng = np.random.default_rng(0)
    city = rng.choice(["Bonn", "Ulm", "Wien"], 100, p=[0.6, 0.3, 0.1])
    cells = [rng.normal(size=100), city.astype(object)]
    encoder = fit_encoder(("a", "city"), cells)
    X, _ = encoder.transform(cells)
    usual = usual_values(X, encoder.outputs, encoder.encoded, encoder.other_texts)
    told = map(words_of, usual.described(X))
    assert all(f"city {name}" in words for name, words in zip(city, told, strict=True))


def test_the_values_farthest_from_their_medians_describe_a_row():
    X = np.linspace(-1.0, 1.0, 41)[:, None] * np.ones(9)
    row = np.array([[0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.5]])
    (values,) = usual_values(X, list("abcdefghi")).described(row)
    assert "".join(value.column for value in values) == "bdfhig"
