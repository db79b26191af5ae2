"""A page on this machine that simulates a handover again at each change of its controls."""
