"""Monitoring of running agents: probes, and alarms that no mode fits."""

from bayescontrol.alarms.alarm import Alarm as Alarm
from bayescontrol.alarms.alarm import alarm_evidence as alarm_evidence
from bayescontrol.alarms.alarm import effective_modes as effective_modes
from bayescontrol.alarms.alarm import mode_surprise as mode_surprise
from bayescontrol.alarms.guarded import Guarded as Guarded
from bayescontrol.alarms.predictors import KrichevskyTrofimov as KrichevskyTrofimov
from bayescontrol.alarms.predictors import LinearPredictor as LinearPredictor
from bayescontrol.alarms.predictors import Predictor as Predictor
from bayescontrol.alarms.predictors import StudentPredictor as StudentPredictor
from bayescontrol.alarms.restarted import RestartedAlarm as RestartedAlarm

# Type checkers read the imports, which re-export every name.
__all__ = ["alarm_evidence", "effective_modes", "mode_surprise"]
__all__ += sorted(name for name, value in list(globals().items()) if callable(value))
