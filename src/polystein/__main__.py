"""``python -m polystein``: the command line."""

import sys

from polystein.cli import main

if __name__ == "__main__":
    sys.exit(main())
