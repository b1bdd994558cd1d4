"""Which patients get a second look, if a missed tumour is far worse than a false alarm."""

import numpy as np

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo

# The data: measurements of cells, bundled. The diagnoses are known here, as a doctor would find.
data = load_demo()
rng = np.random.default_rng(0)
is_today = rng.random(len(data.X)) < 0.3
old, today = data.X[~is_today], data.X[is_today]
diagnoses = data.y[~is_today]

# A doctor looks at 30 patients that are chosen evenly, and then at 20 unusual ones.
model = GammaGMM(random_state=0).fit(old)
print("before:", model.posterior_)
rows = model.suggest(30, random_state=0)
model.update(rows, diagnoses[rows])
low, high = model.labelled_rows_.exact_interval(0.95, side="upper")
print(f"30 patients: at most {high:.1%} have a tumour, with 95 % confidence")
for _ in range(2):
    rows = model.suggest(10, purpose="find")
    model.update(rows, diagnoses[rows], purpose="find")
left = model.labelled_rows_.left
print(f"50 patients: {left.n_found} tumours found, {left.low:.0f} to {left.high:.0f} are left")

# The decision for today's patients, if a miss is 50 times as bad as a false alarm.
sent = model.predict(today, costs=(1, 50)) == 1
caught, all_today = data.y[is_today][sent].sum(), data.y[is_today].sum()
print(f"today: {sent.sum()} of {len(today)} patients get a second look", end=", ")
print(f"among them {caught} of {all_today} with a tumour")
