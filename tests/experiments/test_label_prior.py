"""Coverage by enumeration of all samples, against simulation."""

import numpy as np

from experiments import label_prior


def test_the_coverage_is_that_of_a_simulation(rng):
    n_rows, total, n, n_repeats = 500, 40, label_prior.N_LABELS, 4000
    ends = np.column_stack([np.arange(n + 1) / n - 0.1, np.arange(n + 1) / n + 0.05])
    covers, widths = label_prior.coverage(ends, np.array([total]), n_rows)
    found = rng.hypergeometric(total, n_rows - total, n, size=n_repeats)
    share = total / n_rows
    is_held = (ends[found, 0] <= share) & (share <= ends[found, 1])
    assert abs(covers[0] - is_held.mean()) < 4 * np.sqrt(0.25 / n_repeats)
    np.testing.assert_allclose(widths, 0.15)


def test_the_interval_of_the_package_starts_at_zero_and_the_former_one_does_not():
    reference = label_prior.load_reference()
    intervals = {
        name: label_prior.interval(name, label_prior._posterior(name, reference, 10_000, 0))
        for name in ("former", "10 %")
    }
    assert intervals["former"][0] > intervals["10 %"][0] == 0.0
