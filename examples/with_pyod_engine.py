"""PyOD's engine with an estimated contamination instead of its default of 0.1."""

import numpy as np
from pyod.utils.ad_engine import ADEngine

from gammagmm import GammaGMM, estimate_contamination
from gammagmm.datasets import load_demo

X = load_demo().X
engine = ADEngine(random_state=0)
state = engine.investigate(X)
print(state.analysis["summary"])

# Estimate the contamination from the rows for the engine, whose detectors do not accept 0.
gamma = estimate_contamination(X, n_runs=3, random_state=0)
state = engine.iterate(state, {"action": "adjust_contamination", "value": gamma})
state = engine.analyze(engine.run(state))
print(state.analysis["summary"])
for result in state.results:
    print(f"{result['detector_name']} flags {result['n_anomalies']} rows")

# The engine's diagnostics show how many rows it would flag at both ends of the range.
low, high = gamma.posterior.interval()
print(f"estimate {gamma:.3f}, model range {low:.3f} to {high:.3f}")
for cut in engine.contamination_diagnostics(state, [low, high])["threshold_sweep"]:
    print(f"contamination {cut['contamination']:.3f}: {cut['flagged_rate'] * len(X):.0f} rows")

# For texts or images, use the scores of the engine's detectors instead of the rows.
fitted = [result for result in state.results if result["status"] == "success"]
scores = np.column_stack([result["scores_train"] for result in fitted])
estimator = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)
print(estimator.posterior_)
print(estimator.evidence_)
