"""Monitoring of running agents: probes, and alarms that no mode fits."""

from bayescontrol.alarms.alarm import Alarm, alarm_evidence, effective_modes, mode_surprise
from bayescontrol.alarms.guarded import Guarded
from bayescontrol.alarms.predictors import (
    KrichevskyTrofimov,
    LinearPredictor,
    Predictor,
    StudentPredictor,
)
from bayescontrol.alarms.restarted import RestartedAlarm

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
