"""The benchmark: Zerohop beside other ZeroMQ bindings, measured the same way for all.

``python -m bench`` plays every case in rounds. A round is two fresh processes, a sender and a
receiver; the contenders take turns within each round (A B C, B C A, ...), so that a machine that
slows down slows all of them. Every message is compared with the one that is due, and every
contender is called with its default arguments and default high-water marks.

This package knows the contenders only by their public, pyzmq-like API. It may import nothing of
Zerohop but ``zerohop`` and ``zerohop.asyncio``, and those only by name, as any other contender.
The method, and how to read the results, is in ``docs/explanation/benchmarks.md``.
"""
