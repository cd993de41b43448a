"""What the black-box suites share: a library under test, a driver, a network to join sockets in.

The kit knows the public API alone (pyzmq's names), so that a suite runs against any library which
has that API: zerohop, and pyzmq to prove that the tests say what libzmq does. It may not import
``zerohop`` or ``zmq`` by name except in ``library.py``; ``keeper.py`` serves the white-box tests.
"""
