"""One measuring process: ``python -m bench.worker``, started by ``bench.rounds``.

It ends by itself: when its role is played, when the conducting process is gone, and in any case at
its limit, with the stacks of all threads on stderr.
"""

import asyncio
import faulthandler
import inspect
import sys
from collections.abc import Callable
from typing import Any

from bench.case import Play, Role, Settings
from bench.cases import find_case
from bench.contenders import BY_NAME
from bench.control import Control
from bench.machine import allow_descriptors


def loop_factory(role: Role) -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop that the contender is to run on."""
    if not role.contender.uvloop:
        return asyncio.new_event_loop
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def play_async(role: Role, play: Play) -> None:
    """Play a role inside the loop; close its sockets there too."""
    role.control.tell(result=await play(role))  # type: ignore[misc]  # main() has looked
    role.close()


def main() -> None:
    """Read the orders, play the role, tell the result, close."""
    control = Control.over_standard_streams()
    orders: dict[str, Any] = control.orders()
    settings = Settings(**orders["settings"])
    faulthandler.dump_traceback_later(settings.limit_s, exit=True)
    try:
        case, contender = find_case(orders["case"]), BY_NAME[orders["contender"]]
        allow_descriptors(case.parameters.get("descriptors", 0))
        role = Role(contender, case.parameters, settings, orders["endpoint"], control)
        play: Play = getattr(case.parts[orders["role"]], contender.style)
        if inspect.iscoroutinefunction(play):
            with asyncio.Runner(loop_factory=loop_factory(role)) as runner:
                runner.run(play_async(role, play))
        else:
            control.tell(result=play(role))
            role.close()
    except Exception as error:  # noqa: BLE001 - whatever it is, the round's row must show it
        control.tell(error=f"{type(error).__name__}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
