"""``python -m bench``: see ``python -m bench --help``."""

import sys

from bench.cli import main

sys.exit(main(sys.argv[1:]))
