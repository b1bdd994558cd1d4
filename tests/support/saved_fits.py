"""The members of the file of a saved fit, and files of changed members."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

from gammagmm._support.archives import digest_of
from tests.support.mutated_files import JSON_VALUES


def members(path):
    """The content of each member of the file, or of a file object, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files, method=zipfile.ZIP_STORED, *, is_forged=True):
    """The file with these members, and with the right digest if it `is_forged`."""
    parts = {name: part for name, part in files.items() if name != "sha256"}
    parts = {name: p.encode() if isinstance(p, str) else p for name, p in parts.items()}
    digest = digest_of(parts.items()) if is_forged else files["sha256"]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, part in (parts | {"sha256": digest}).items():
            archive.writestr(name, part)
    return file.getvalue()


def npy(array):
    """The array as an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def change_value(text, rng):
    """The JSON document with one value replaced."""
    inside, place = {"": json.loads(text)}, ""
    whole = inside
    while isinstance(inside[place], dict | list) and inside[place]:
        inside = inside[place]
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        place = keys[int(rng.integers(len(keys)))]
        if rng.random() < 0.1:
            break
    inside[place] = JSON_VALUES[int(rng.integers(len(JSON_VALUES)))]
    return json.dumps(whole[""]).encode()


def change_array(array, rng):
    """The array with another shape, type, order, number or bytes."""
    array = np.atleast_1d(array)
    number, content = array.ravel(), bytearray(array.tobytes())
    if content:
        for place in rng.integers(len(content), size=4):
            content[place] = rng.integers(256)
    if len(number) and array.dtype.names is None:
        number[int(rng.integers(len(number)))] = 77
    changes = [
        array[:-1],
        array.T,
        array.ravel(),
        array[..., None],
        array[::-1],
        number.reshape(array.shape),
        np.frombuffer(bytes(content), dtype=array.dtype).reshape(array.shape),
    ]
    if array.dtype.names is None:
        changes += [array.astype(np.float32), array.astype("U3"), array.astype(complex)]
        changes += [-array if array.dtype != bool else ~array]
    return changes[int(rng.integers(len(changes)))]
