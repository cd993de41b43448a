"""What those who are killed share with those who kill them; no more is imported by them all."""

import sys
import threading

SOON = 20.0  # seconds that something may take which has to happen, on a loaded machine


def told():
    """Something that is set with the next line of standard input, or its end."""
    heard = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), heard.set()), daemon=True).start()
    return heard
