import numpy as np

from gammagmm.mixture.score_space import fit_scaler


def test_score_space_is_the_standardised_logarithm_of_the_shifted_scores(rng):
    scores = rng.gamma(2.0, size=(400, 3)) * [1.0, 50.0, 0.01]
    space = fit_scaler(scores).transform(scores)
    for column, raw in zip(space.T, scores.T, strict=True):
        logs = np.log(raw - raw.min() + 0.01)
        np.testing.assert_allclose(column, (logs - np.mean(logs)) / np.std(logs), atol=1e-12)


def test_adding_a_constant_to_a_detector_changes_nothing(rng):
    scores = rng.gamma(2.0, size=(100, 2))
    shifted = scores + np.array([1000.0, -7.0])
    space = fit_scaler(scores).transform(scores)
    np.testing.assert_allclose(fit_scaler(shifted).transform(shifted), space, atol=1e-9)


def test_new_rows_use_the_training_statistics_and_are_clipped_to_the_training_range(rng):
    scores = rng.gamma(2.0, size=(100, 1))
    scaler = fit_scaler(scores)
    space = scaler.transform(scores)
    assert scaler.transform(scores.min(keepdims=True) - 3.0).item() == space.min()
    for far in (1e6, 1e308):
        assert scaler.transform(np.array([[far]])).item() == space.max()
    between = 0.3 * scores.min() + 0.7 * scores.max()
    logs = np.log(scores - scores.min() + 0.01)
    expected = (np.log(between - scores.min() + 0.01) - logs.mean()) / logs.std()
    np.testing.assert_allclose(scaler.transform(np.array([[between]])).item(), expected)


def test_a_detector_whose_scores_hardly_vary_counts_no_more_than_on_the_training_rows(rng):
    scores = np.column_stack([rng.gamma(2.0, size=100), rng.normal(1.0, 1e-6, size=100)])
    scaler = fit_scaler(scores)
    new = np.array([[1.0, 1.1]])
    logs = np.log(scores - scores.min(axis=0) + 0.01)
    unbounded = (np.log(new - scores.min(axis=0) + 0.01) - logs.mean(axis=0)) / logs.std(axis=0)
    assert unbounded[0, 1] > 1000.0
    space = scaler.transform(scores)
    expected = np.mean([unbounded[0, 0], space[:, 1].max()])
    np.testing.assert_allclose(scaler.consensus(new), expected, rtol=1e-12)
