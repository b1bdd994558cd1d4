"""Store the results of the fixed starts in tests/golden/results.json.

    python -m stress.store_results "the words of the CHANGELOG"

The reason for the change is stored with the numbers; a test looks for the same words in
CHANGELOG.md.
"""

from __future__ import annotations

import json
import sys

from tests.support.fixed_starts import CASES, STORED_RESULTS, result_of


def main(reason: str) -> None:
    results = {name: result_of(case.make_scores(), case) for name, case in CASES.items()}
    stored = {"declared": reason, "results": results}
    STORED_RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
