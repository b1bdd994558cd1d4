"""PyOD's engine with an estimated contamination instead of its default of 0.1."""

import numpy as np
from pyod.utils.ad_engine import ADEngine

from gammagmm import GammaGMM, estimate_contamination
from gammagmm.datasets import load_demo

X, y = load_demo().X, load_demo().y
engine = ADEngine(random_state=0)
state = engine.investigate(X)
print(state.analysis["summary"])

# Estimate the contamination for the engine from the rows, and from your own answers about 30.
answers = {row: y[row] for row in range(0, 360, 12)}  # 1 anomaly, 0 normal
gamma = estimate_contamination(X, labels=answers, n_runs=3, random_state=0)
state = engine.iterate(state, {"action": "adjust_contamination", "value": gamma})
state = engine.analyze(engine.run(state))
print(state.analysis["summary"])
for result in state.results:
    print(f"{result['detector_name']} flags {result['n_anomalies']} rows")

# The engine's diagnostics show how many rows it would flag at both ends of the interval.
low, high = gamma.posterior.interval()
print(f"estimate {gamma:.3f}, 90 % interval {low:.3f} to {high:.3f}")
for cut in engine.contamination_diagnostics(state, [low, high])["threshold_sweep"]:
    print(f"contamination {cut['contamination']:.3f}: {cut['flagged_rate'] * len(X):.0f} rows")

# For texts or images, use the scores of the engine's detectors instead of the rows.
fitted = [result for result in state.results if result["status"] == "success"]
scores = np.column_stack([result["scores_train"] for result in fitted])
estimator = GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)
print(estimator.posterior_)
print(estimator.evidence_)
