"""pyzmq's ``zmq.sugar.version``."""

from zerohop import __version__, pyzmq_version, pyzmq_version_info, zmq_version, zmq_version_info

__all__ = ["__version__", "pyzmq_version", "pyzmq_version_info", "zmq_version", "zmq_version_info"]
