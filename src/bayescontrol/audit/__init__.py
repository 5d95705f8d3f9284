"""Audit any agent or predictor for self-delusion: does it take its own actions for evidence?"""

from bayescontrol.audit.figures import charts as charts
from bayescontrol.audit.measure import Audit as Audit
from bayescontrol.audit.measure import WorldAudit as WorldAudit
from bayescontrol.audit.measure import audit as audit
from bayescontrol.audit.predictors import AgentPredictor as AgentPredictor
from bayescontrol.audit.predictors import Batched as Batched
from bayescontrol.audit.predictors import Classifier as Classifier
from bayescontrol.audit.predictors import PredictorFailed as PredictorFailed
from bayescontrol.audit.predictors import Stateful as Stateful
from bayescontrol.audit.teaching import Lessons as Lessons
from bayescontrol.audit.teaching import TabularLearner as TabularLearner
from bayescontrol.audit.teaching import counterfactual_lessons as counterfactual_lessons
from bayescontrol.audit.teaching import factual_lessons as factual_lessons
from bayescontrol.audit.transcript import Event as Event
from bayescontrol.audit.transcript import InvalidTranscript as InvalidTranscript
from bayescontrol.audit.transcript import Transcript as Transcript
from bayescontrol.audit.transcript import did as did
from bayescontrol.audit.transcript import read_transcripts as read_transcripts
from bayescontrol.audit.transcript import saw as saw
from bayescontrol.audit.transcript import shown as shown
from bayescontrol.audit.transcript import write_transcripts as write_transcripts
from bayescontrol.audit.worlds import WORLDS as WORLDS
from bayescontrol.audit.worlds import World as World
from bayescontrol.audit.worlds import export_worlds as export_worlds

# Type checkers read the imports, which re-export every name.
__all__ = ["WORLDS", *sorted(n for n, value in list(globals().items()) if callable(value))]
