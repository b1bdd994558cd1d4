"""Which accounts of 3,000 log-ins are stolen, and how many are not found yet."""

import numpy as np
import polars as pl

from gammagmm import GammaGMM

# The data: a seeded generator, in which 60 of 3,000 log-ins are those of thieves.
rng = np.random.default_rng(1)
n = 3000
is_theft = np.zeros(n, dtype=int)
is_theft[rng.choice(n, 60, replace=False)] = 1
usual, odd = rng.normal(13, 2.5, n), rng.uniform(0, 24, n)
log_ins = pl.DataFrame(
    {
        "user_id": [f"u{number:04d}" for number in rng.permutation(n)],
        "hour": np.where(is_theft, odd, usual).round(1) % 24,
        "country": np.where(
            is_theft & (rng.random(n) < 0.7), "other", rng.choice(["DE", "FR", "IT"], n)
        ),
        "failed_before": rng.poisson(np.where(is_theft, 1.5, 0.3)),
        "minutes": rng.gamma(2.0, np.where(is_theft, 6.0, 12.0)).round(1),
        "megabytes": rng.lognormal(np.where(is_theft, 2.5, 1.5), 0.7).round(2),
    }
)

model = GammaGMM("fast", columns={"id": "user_id"}, random_state=0).fit(log_ins)

# Ten thefts that were reported are no sample; 60 log-ins that are chosen evenly are one.
reported = np.flatnonzero(is_theft)[:10]
model.update(reported, is_theft[reported], at_random=False)
rows = model.suggest(60, random_state=0)
model.update(rows, is_theft[rows])
print(model.posterior_)

# Search, in steps of ten, until hardly any theft is left in a step.
found = 10
while found >= 3:
    rows = model.suggest(10, purpose="find")
    model.update(rows, is_theft[rows], purpose="find")
    found = is_theft[rows].sum()
left = model.labelled_rows_.left
checks = len(model.known_rows_.rows) - 10
print(f"{left.n_found} thefts are known after {checks} checks", end="; ")
print(f"{left.low:.0f} to {left.high:.0f} are left")

# The decision: the accounts of the known thefts are locked, and the next ten log-ins are watched.
known = model.known_rows_
stolen = known.rows[known.labels == 1]
print(f"{len(stolen)} accounts are locked, such as {log_ins['user_id'][int(stolen[0])]}")
print("watched:", *log_ins["user_id"][model.suggest(10, purpose="find")].to_list())
