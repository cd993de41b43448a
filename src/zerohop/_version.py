"""The version, in one place: the build and ``zerohop.__version__`` both read it here."""

__version__ = "0.1.0"
