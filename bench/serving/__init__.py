"""What the serving plane costs, beside what is written by hand: ``python -m bench.serving``.

Each part is a module with a ``run(quick)`` that returns its figures: a row of JSON each, with what
was measured, for whom, and what it has to be.
"""
