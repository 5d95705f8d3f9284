"""Monitoring of running agents: probes, and an alarm that no mode fits."""

from bayescontrol.live.alarm import Alarm
from bayescontrol.live.guarded import Guarded
from bayescontrol.live.predictors import KrichevskyTrofimov, Predictor, StudentPredictor
from bayescontrol.live.probes import alarm_evidence, effective_modes, mode_surprise

__all__ = [
    "Alarm",
    "Guarded",
    "KrichevskyTrofimov",
    "Predictor",
    "StudentPredictor",
    "alarm_evidence",
    "effective_modes",
    "mode_surprise",
]
