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

from bayescontrol.testing.laws import LawBroken as LawBroken
from bayescontrol.testing.laws import check_acting as check_acting
from bayescontrol.testing.laws import check_agreement as check_agreement
from bayescontrol.testing.laws import check_bad_evidence as check_bad_evidence
from bayescontrol.testing.laws import check_deterministic as check_deterministic
from bayescontrol.testing.laws import check_fused as check_fused
from bayescontrol.testing.laws import check_intervention as check_intervention
from bayescontrol.testing.laws import check_merge as check_merge
from bayescontrol.testing.laws import check_order as check_order
from bayescontrol.testing.laws import check_probes as check_probes
from bayescontrol.testing.laws import check_resume as check_resume
from bayescontrol.testing.laws import check_same_seed as check_same_seed
from bayescontrol.testing.laws import check_save as check_save
from bayescontrol.testing.laws import same_bits as same_bits
from bayescontrol.testing.suite import check_agent as check_agent
from bayescontrol.testing.suite import check_identities as check_identities
from bayescontrol.testing.suite import check_mode as check_mode
from bayescontrol.testing.suite import check_modes as check_modes

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
