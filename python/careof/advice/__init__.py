"""What to do about handovers inside a domain, for a path of given rate and round trip: from a model, not simulated.

The model is in [`careof.advice.model`][]; its coefficients are fitted on runs of the simulator, and its error is that
against runs it has not seen.
"""

from __future__ import annotations

from careof.advice.model import SENDERS, Advice, Conditions, Prediction, Scheme, advise, predict

__all__ = ["SENDERS", "Advice", "Conditions", "Prediction", "Scheme", "advise", "predict"]
