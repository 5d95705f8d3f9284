"""Check the laws of the library on your modes, beliefs and agents.

    1  conditioning is deterministic; drawing is the only randomness
    2  actions are interventions: policies and acting do not change the belief
    3  independent implementations of one belief agree
    4  the order of exchangeable observations does not matter; merged evidence counts once
    5  same seed, same record; a saved and resumed run is the same run
    6  the compiled loop equals the readable one, bit for bit
    7  bad evidence raises a typed error and changes nothing
    8  E[posterior] = prior, the match rate, Ville's bound

`check_modes` runs all that apply. A failed check raises `LawBroken`, an AssertionError that says
what differs. Checks that simulate take a seed and a false-alarm rate.
"""

from bayescontrol.testing.laws import (
    LawBroken,
    check_acting,
    check_agreement,
    check_bad_evidence,
    check_deterministic,
    check_fused,
    check_intervention,
    check_merge,
    check_order,
    check_probes,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)
from bayescontrol.testing.suite import check_agent, check_identities, check_mode, check_modes

__all__ = [
    "LawBroken",
    "check_acting",
    "check_agent",
    "check_agreement",
    "check_bad_evidence",
    "check_deterministic",
    "check_fused",
    "check_identities",
    "check_intervention",
    "check_merge",
    "check_mode",
    "check_modes",
    "check_order",
    "check_probes",
    "check_resume",
    "check_same_seed",
    "check_save",
    "same_bits",
]
