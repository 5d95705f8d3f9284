"""Agents, studies and contests beyond the paper: for benchmarks, not installed.

Run and import them from the root of the repository:

    python -m benchmarks.arena        contests between this library and other packages, one page
    from benchmarks.arena import …    agents to compare with, from the folder `agents`
    bandit_zoo, maze_zoo, …           studies of these agents

A contest is a topic with worlds (`contest`, `page`, and a module for each topic). The players of
other packages are in `benchmarks.peers`. Kernels are compiled and cached like those of the library.
"""

from benchmarks.arena.agents.bamcp import BAMCP
from benchmarks.arena.agents.bandits import InformationDirected, KnowledgeGradient
from benchmarks.arena.agents.bayesian_q import BayesianQ
from benchmarks.arena.agents.optimism import MOSS, BayesUCB, UCBTuned
from benchmarks.arena.agents.partition_tree import PartitionTree
from benchmarks.arena.agents.ucrl2 import UCRL2

__all__ = [
    "BAMCP",
    "MOSS",
    "UCRL2",
    "BayesUCB",
    "BayesianQ",
    "InformationDirected",
    "KnowledgeGradient",
    "PartitionTree",
    "UCBTuned",
]
