"""Builds the documents as a site: python -m docs.site [FOLDER], or make site.

Needs the extra `docs` and the built page; nothing is taken from a network. The site lies in
build/site and opens from a disk or from any server.
"""

import sys
from pathlib import Path

from docs.site.build import build
from docs.site.source import ROOT


def main() -> None:
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "site"
    problems = build(target)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"open {target / 'index.html'}")


if __name__ == "__main__":
    main()
