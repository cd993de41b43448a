"""asyncio in debug mode, and a test fails when asyncio complains of anything."""

import logging

import pytest


@pytest.fixture(autouse=True)
def complaints(request, monkeypatch, caplog):
    """What asyncio has logged: never retrieved, destroyed but pending, an exception in a callback.

    A test that provokes a complaint on purpose empties the list.
    """
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    heard = []
    with caplog.at_level(logging.WARNING, logger="asyncio"):
        yield heard
        heard += [
            record.getMessage()
            for when in ("setup", "call", "teardown")
            for record in caplog.get_records(when)
            if record.name == "asyncio" and not record.getMessage().startswith("Executing ")
        ]
    assert heard == []
