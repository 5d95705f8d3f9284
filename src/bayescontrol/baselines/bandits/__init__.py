"""What the control rule is measured against on bandits, each from its paper, with one face.

    agent = UCB1(10)         agent.act(rng) -> arm         agent.observe(arm, reward)

They keep three numbers an arm: how many rewards, their sum, the sum of their squares.
"""

from bayescontrol.baselines.bandits.agent import CountingAgent, fused_loop
from bayescontrol.baselines.bandits.bayesian import (
    BayesUCB,
    InformationDirected,
    KnowledgeGradient,
)
from bayescontrol.baselines.bandits.greedy import EpsilonGreedy, Softmax
from bayescontrol.baselines.bandits.optimism import KLUCB, MOSS, UCB1, UCBTuned
from bayescontrol.baselines.bandits.reference import Oracle, UniformLevers

__all__ = [
    "KLUCB",
    "MOSS",
    "UCB1",
    "BayesUCB",
    "CountingAgent",
    "EpsilonGreedy",
    "InformationDirected",
    "KnowledgeGradient",
    "Oracle",
    "Softmax",
    "UCBTuned",
    "UniformLevers",
    "fused_loop",
]
