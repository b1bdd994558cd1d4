"""Wrong labels: coverage of the 90 % interval with and without their rate.

    python -m experiments.label_error

writes results/label_error.json. The true share has the reference distribution, and each label is
wrong with the same probability. The number of labels that say "anomaly" is binomial, so that each
figure is a sum over its values and over quantiles of the share.
"""

from __future__ import annotations

import json

import numpy as np
from scipy.stats import binom

from experiments.results import RESULTS
from gammagmm import GammaPosterior
from gammagmm._support.files import write_document
from gammagmm.labels.label_error import posterior_with_errors
from gammagmm.posterior.track_record import load_label_prior

NUMBERS, ERRORS, N_QUANTILES = (30, 100), (0.0, 0.02, 0.05, 0.1), 400
FILE = RESULTS / "label_error.json"


def main() -> None:
    found = {str(n): {f"{error:g}": figures(n, error) for error in ERRORS} for n in NUMBERS}
    write_document(json.dumps(found, indent=1) + "\n", FILE, overwrite=True)


def figures(n: int, error: float) -> dict[str, dict[str, float]]:
    """Coverage and mean width with the right rate of errors, and as if labels were right."""
    shares = GammaPosterior.reference().ppf((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)
    p = shares * (1.0 - error) + (1.0 - shares) * error
    p_found = binom.pmf(np.arange(n + 1), n, p[:, None])
    found = {}
    for name, assumed in (("without", 0.0), ("with", error)):
        posteriors = (
            posterior_with_errors(n, k, load_label_prior(), (assumed, assumed))
            for k in range(n + 1)
        )
        low, high = np.array([each.interval() for each in posteriors]).T
        is_held = (low <= shares[:, None]) & (shares[:, None] <= high)
        found[name] = {
            "held": float((p_found * is_held).sum() / N_QUANTILES),
            "width": float((p_found @ (high - low)).mean()),
        }
    return found


if __name__ == "__main__":
    main()
