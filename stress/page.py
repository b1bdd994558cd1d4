"""Write the results of the long runs into docs/explanations/reliability-inputs.md.

python -m stress.page
"""

from __future__ import annotations

from tests.support.reliability_figures import write_figures

if __name__ == "__main__":
    write_figures()
