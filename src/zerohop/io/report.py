"""One line for the user, where the log is."""

from __future__ import annotations

import sys


def report(text: str) -> None:
    """Log a warning; write it to stderr, as ``logging`` itself would, if nobody has imported that.

    Not imported for it: that takes 5 ms, and evaluates a string, whereupon CPython forgets that the
    program is about to end by KeyboardInterrupt, and the exit status is 1 and not the signal.
    """
    logging = sys.modules.get("logging")
    # Without getLogger somebody has just begun to import it.
    if logging is not None and hasattr(logging, "getLogger"):
        logging.getLogger("zerohop").warning("%s", text)
    elif sys.stderr is not None:
        try:
            sys.stderr.write(f"{text}\n")
        except (OSError, ValueError):  # closed
            return
