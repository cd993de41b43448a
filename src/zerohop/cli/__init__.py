"""The command ``zerohop``: looks at what runs, and needs no program to be written for it.

Knows: argparse, terminals, exit statuses, and the public names of ``zerohop.serving``. Does not
know: how anything is found out; that is a call each. One file a command; ``main`` has the table.

    pip install ".[cli]"  # in a clone
"""
