"""Without PyTorch, pytest does not collect the one module that imports it at the top."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/gammagmm/detectors/autoencoders.py"]
