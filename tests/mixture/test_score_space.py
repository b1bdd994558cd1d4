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


def test_new_rows_use_the_training_statistics_and_are_clipped_at_the_training_minimum(rng):
    scores = rng.gamma(2.0, size=(100, 1))
    scaler = fit_scaler(scores)
    lowest = scaler.transform(scores).min()
    assert scaler.transform(scores.min(keepdims=True) - 3.0).item() == lowest
    far = scaler.transform(np.array([[1e6]])).item()
    logs = np.log(scores - scores.min() + 0.01)
    np.testing.assert_allclose(far, (np.log(1e6 - scores.min() + 0.01) - logs.mean()) / logs.std())
