"""Agents and studies beyond the paper: compared in benchmarks, not installed.

Import them as `benchmarks.arena` from the root of the repository. Their kernels are compiled and
cached like those of the library.
"""

from benchmarks.arena.bamcp import BAMCP
from benchmarks.arena.bandits import InformationDirected, KnowledgeGradient
from benchmarks.arena.bayesian_q import BayesianQ
from benchmarks.arena.optimism import MOSS, BayesUCB, UCBTuned
from benchmarks.arena.partition_tree import PartitionTree
from benchmarks.arena.posterior_sampling import DirichletMDPBelief, PosteriorSampling
from benchmarks.arena.ucrl2 import UCRL2

__all__ = [
    "BAMCP",
    "MOSS",
    "UCRL2",
    "BayesUCB",
    "BayesianQ",
    "DirichletMDPBelief",
    "InformationDirected",
    "KnowledgeGradient",
    "PartitionTree",
    "PosteriorSampling",
    "UCBTuned",
]
