"""JSON as octets, as ``send_json`` and ``recv_json`` have it: pyzmq's ``zmq.utils.jsonapi``."""

from zerohop.api.values import json_octets as dumps
from zerohop.api.values import json_value as loads

__all__ = ["dumps", "loads"]
