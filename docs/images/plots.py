"""Draw docs/images/plots.png: a ranking before and after labels, what is found, and groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

if __name__ == "__main__":
    data = make_contaminated(2000, 6, 0.06, "local", random_state=1)
    detector = GammaGMM("fast", random_state=0).fit(data.X)
    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    before, after, found, groups = figure.subplots(2, 2).ravel()
    detector.fit_.plot(before).set_title("Without labels", loc="left")
    rows = detector.suggest(100, random_state=0)
    detector.update(rows, data.y[rows])
    detector.fit_.plot(after).set_title("With 100 labels", loc="left")
    detector.labelled_rows_.plot(found)
    regions = np.array(["north", "south", "west", "east"])[np.arange(len(data.X)) % 7 % 4]
    detector.labelled_rows_.by_group(regions).plot(groups).set_title("Groups", loc="left")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110, metadata={"Software": None})
