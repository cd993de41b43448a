"""When a silent stream is asked about."""

from zerohop.serving.kv.checks import Checks


def times(checks, count):
    """The next times at which it is asked, if nothing comes."""
    found = []
    for _ in range(count):
        found.append(checks.due)
        assert checks.take(checks.due)
    return found


def test_a_silence_is_asked_about_again_and_again():
    checks = Checks(30.0)
    checks.begin(1.0)
    assert times(checks, 3) == [31.0, 61.0, 91.0]


def test_before_its_time_nothing_is_asked():
    checks = Checks(30.0)
    checks.begin(0.0)
    assert not checks.take(29.9)
    assert checks.due == 30.0


def test_a_batch_puts_it_off():
    checks = Checks(30.0)
    checks.begin(0.0)
    checks.heard(7.0)
    assert checks.due == 37.0


def test_after_a_new_connection_it_is_asked_soon_and_then_less_and_less_often():
    checks = Checks(1.5)
    checks.connected(0.0)
    assert times(checks, 5) == [0.25, 0.75, 1.75, 3.25, 4.75]


def test_a_batch_on_a_new_connection_ends_the_hurry():
    checks = Checks(30.0)
    checks.connected(0.0)
    checks.heard(0.1)
    assert times(checks, 2) == [30.1, 60.1]


def test_never_is_never():
    checks = Checks(None)
    checks.begin(0.0)
    checks.connected(0.0)
    checks.heard(0.0)
    assert checks.due is None
    assert not checks.take(1e9)


def test_a_short_time_is_not_made_longer():
    checks = Checks(0.1)
    checks.connected(0.0)
    assert times(checks, 2) == [0.1, 0.2]
