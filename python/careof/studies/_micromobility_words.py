"""What is to be said about the rows of the study `micromobility`."""

from __future__ import annotations

EXPLANATIONS = {"M1": "", "M2": "", "M3": "", "M4": "", "M5": "", "M6": ""}

M7 = ""

ASSUMPTIONS = ""
