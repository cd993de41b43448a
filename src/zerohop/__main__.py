"""``python -m zerohop`` is the command ``zerohop``."""

import sys

from zerohop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
