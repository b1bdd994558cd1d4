"""The wind-turbine competition's raw CSV files -> rows of one minute, labelled by interval.

A folder holds, for turbine 15 (and 21 likewise), 15_data.csv with a column `time` and one column a
sensor, and 15_normalInfo.csv and 15_failureInfo.csv with the columns startTime and endTime.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gammagmm.datasets import Dataset

NO_SENSORS = ("time", "group")  # `group` numbers the rows' batches


def read_turbine(folder: Path, number: int) -> Dataset:
    """Sensor means over each minute; 1 in a failure interval, 0 in a normal one, dropped else."""
    import pandas as pd

    table = pd.read_csv(folder / f"{number}_data.csv", parse_dates=["time"])
    sensors = [name for name in table.columns if name not in NO_SENSORS]
    label = pd.Series(-1, index=table.index)
    for name, value in (("normal", 0), ("failure", 1)):
        label[_inside(table["time"], folder / f"{number}_{name}Info.csv")] = value
    known = label >= 0
    # A minute that an interval's end cuts in two is two rows, one a label.
    keys = [table["time"][known].dt.floor("min"), label[known].rename("label")]
    minutes = table.loc[known, sensors].groupby(keys).mean()
    y = minutes.index.get_level_values("label").to_numpy()
    return Dataset(minutes.to_numpy(float), y, f"T{number}", tuple(sensors))


def _inside(times: Any, path: Path) -> Any:
    """Whether each time lies in one of the intervals of the file, ends included."""
    import pandas as pd

    inside = pd.Series(False, index=times.index)
    intervals = pd.read_csv(path, parse_dates=["startTime", "endTime"])
    for start, end in zip(intervals["startTime"], intervals["endTime"], strict=True):
        inside |= times.between(start, end)
    return inside
