"""The library's log: to be imported when there is something to say, for ``logging`` takes 5 ms."""

import logging

log = logging.getLogger("zerohop")
