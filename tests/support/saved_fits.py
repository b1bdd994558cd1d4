"""The members of the file of a saved fit, and files of changed members."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from gammagmm._support.archives import digest_of


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
