"""Clocks for one layer at a time, in one process; what an application sees is measured above."""
