"""Which day a machine with eight sensors is stopped, when one sensor begins to drift."""

import numpy as np
import pandas as pd

from gammagmm import GammaGMM

# The data: 90 days with 200 readings; the sensor "bearing" warms up from day 60 on.
rng = np.random.default_rng(0)
names = ["motor", "bearing", "oil", "vibration", "flow", "pressure", "voltage", "current"]
load = rng.normal(size=(90, 200, 1))  # all sensors follow the load
readings = 0.7 * load + rng.normal(size=(90, 200, 8))
readings[:, :, 1] += np.clip(np.arange(90) - 60, 0, None)[:, None] * 0.15
spikes = rng.random((90, 200)) < 0.02  # 2 % of the readings are disturbed
readings[spikes] += rng.normal(0, 5, size=(spikes.sum(), 8))
days = [pd.DataFrame(day, columns=names) for day in readings]

# The fit: the first 20 days. Then every day is counted when it is over.
model = GammaGMM("fast", random_state=0).fit(pd.concat(days[:20]))
history = None
for number, day in enumerate(days[20:], start=20):
    history = model.monitor(day, history=history, name=f"day {number}")
    if history.state.kind == "raised":
        break
print(f"{history.newest.name}: {history.state_words(history.state)}")

# Why: the column that moved.
for column in history.moved_columns:
    print(f"{column.name} is {'higher' if column.is_higher else 'lower'} than on the quiet days")

# The decision: are these disturbed readings, or is it the machine? A person looks at 30 of them.
batch = model.batch(day)
rows = batch.suggest(30, random_state=0)
print(batch.update(rows, spikes[number][rows].astype(int)))
flagged = model.predict(day).mean()
print(f"{flagged:.0%} of the readings are flagged, and few of them are disturbed: stop the machine")
