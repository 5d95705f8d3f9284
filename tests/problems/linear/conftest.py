"""The compiled loops are found by `interact` in these tests."""

from bayescontrol.baselines.linear import CertaintyEquivalence, OptimalController
from bayescontrol.fused import register_loop
from bayescontrol.problems.linear import LinearAgent, LinearPlant
from bayescontrol.problems.linear.loop import fused_gain, fused_loop

for agent in (LinearAgent, CertaintyEquivalence):
    register_loop(agent, LinearPlant, fused_loop)
register_loop(OptimalController, LinearPlant, fused_gain)
