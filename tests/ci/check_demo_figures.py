"""The demo saves what docs/figures.md and the README say, within a tenth.

    check_demo_figures.py OUTPUT_OF_THE_DEMO

A tenth, because encoders differ in the last digits between processors, and so may the sets.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARE = 0.1
PRINTED = re.compile(r"(\d+) turns: (\d+) tokens of tool definitions instead of (\d+)")
WRITTEN = re.compile(
    r"over\s+the\s+demo's\s+nine\s+turns\s+([\d,]+)\s+tokens\s+of\s+definitions"
    r"\s+are\s+sent\s+instead\s+of\s+([\d,]+)",
    re.IGNORECASE,
)
PAGES = ("README.md", "docs/figures.md")


def main() -> int:
    """Prints what differs; 1 when anything does."""
    printed = PRINTED.search(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if printed is None:
        print("the demo printed no sum of its tokens")
        return 1
    turns, sent, instead_of = (int(number) for number in printed.groups())
    problems = [] if turns == 9 else [f"the demo has {turns} turns; the pages say nine"]
    for page in PAGES:
        written = WRITTEN.search((ROOT / page).read_text(encoding="utf-8"))
        if written is None:
            problems.append(f"{page} does not say what the demo saves")
            continue
        claims = [int(number.replace(",", "")) for number in written.groups()]
        for claim, measured in zip(claims, (sent, instead_of), strict=True):
            if abs(claim - measured) > SHARE * measured:
                problems.append(f"{page} says {claim:,} tokens; the demo printed {measured:,}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
