"""One of the processes that share a layout out among the cores: `run.py` starts it."""

import sys

from attention_atlas.layout.run import work
from attention_atlas.names.errors import AtlasError

if __name__ == "__main__":
    try:
        work(int(sys.argv[1]), sys.stdin.read())
    except AtlasError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
