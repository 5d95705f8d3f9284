"""Monitoring of running agents: probes, and alarms that no mode fits."""

from bayescontrol.live.alarm import Alarm
from bayescontrol.live.guarded import Guarded
from bayescontrol.live.linear_predictor import LinearPredictor
from bayescontrol.live.predictors import KrichevskyTrofimov, Predictor, StudentPredictor
from bayescontrol.live.probes import alarm_evidence, effective_modes, mode_surprise
from bayescontrol.live.restarted import RestartedAlarm

__all__ = [
    "Alarm",
    "Guarded",
    "KrichevskyTrofimov",
    "LinearPredictor",
    "Predictor",
    "RestartedAlarm",
    "StudentPredictor",
    "alarm_evidence",
    "effective_modes",
    "mode_surprise",
]
