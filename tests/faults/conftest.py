"""What campaigns of faults have: chance, programs, and nothing that outlives them."""

import pytest

from tests.faults.kit import chance_of, children
from tests.stress.conftest import new_context, program, team

__all__ = ["new_context", "program", "team"]


@pytest.fixture
def chance(request):
    return chance_of(request.param)


@pytest.fixture(autouse=True)
def no_process_is_left():
    """Neither one that runs nor one that nobody has waited for."""
    before = children()
    yield
    assert children() <= before
