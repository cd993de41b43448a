"""Which engines are registered with an MP server, and which of them still ping."""

import pytest

from zerohop.serving import RequestRefused
from zerohop.serving.control.lmcache.instances import Instances


@pytest.fixture
def instances():
    instances = Instances(timeout=120.0, grace=3600.0)
    instances.register(7, "model", 0.0)
    return instances


def test_one_that_pings_is_here(instances):
    assert instances.ping(7, 100.0)
    assert instances.reap(219.0) == []
    [gone] = instances.reap(220.0)
    assert (gone.instance_id, gone.registration) == (7, "model")
    assert instances.present == {}


def test_one_that_has_never_pinged_has_more_time(instances):
    assert instances.reap(3599.0) == []
    assert [each.instance_id for each in instances.reap(3600.0)] == [7]


def test_a_ping_of_nobody_is_answered(instances):
    assert instances.ping(None, 0.0)
    assert instances.strangers == 0


def test_a_ping_of_a_stranger_is_answered_and_counted(instances):
    assert instances.ping(8, 0.0)
    assert (instances.strangers, list(instances.present)) == (1, [7])


def test_a_registration_makes_void_what_was_known(instances):
    instances.ping(7, 0.0)
    instances.register(7, "other", 1.0)
    assert (instances.present[7].registration, instances.present[7].has_pinged) == ("other", False)


def test_one_that_goes_is_gone(instances):
    instances.unregister(7)
    instances.unregister(7)
    assert instances.present == {}


def test_the_silent_make_room_for_who_comes_where_there_is_none():
    instances = Instances(timeout=120.0, grace=3600.0, most=2)
    instances.register(7, "model", 0.0)
    instances.register(8, "model", 100.0)
    instances.register(9, "model", 3600.0)
    assert list(instances.present) == [8, 9]


def test_one_too_many_is_refused_and_who_is_here_may_register_anew():
    instances = Instances(most=2)
    instances.register(7, "model", 0.0)
    instances.register(8, "model", 0.0)
    with pytest.raises(RequestRefused, match="the limit of 2 instances is reached"):
        instances.register(9, "model", 1.0)
    instances.register(8, "other", 1.0)
    assert [each.registration for each in instances.present.values()] == ["model", "other"]
