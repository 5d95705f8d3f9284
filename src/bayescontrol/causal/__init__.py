"""Finite causal models: an ordered factorisation, and what it means to set a variable.

    causal model     p(θ), p(X1 | θ), p(X2 | X1, θ), p(X3 | X1, X2, θ)
    condition        p(θ | x2)        keep the worlds in which X2 = x2, renormalise
    intervene        p(θ | X2 ← x2)   replace p(X2 | X1, θ) by the Kronecker delta δ(X2, x2)

A condition is evidence about the causes of X2, an intervention is none: whoever sets x2
learns nothing from it. An agent's own actions are interventions, and that is all the Bayesian
control rule adds to Bayes' rule. Tables of Fractions and integers are computed exactly.

**The statistician.** She sees x1, draws x2 from her own model, hands it to the source and
sees x3. Here every X tells of θ, and X3 depends on x2 as well.

>>> from fractions import Fraction as F
>>> bit, half = (0, 1), F(1, 2)
>>> def like(value):  # a noisy copy
...     return {value: F(3, 4), 1 - value: F(1, 4)}
>>> p = CausalModel([
...     Factor("theta", bit, [half, half]),
...     Factor("X1", bit, like, parents=["theta"]),
...     Factor("X2", bit, lambda theta, x1: like(theta), parents=["theta", "X1"]),
...     Factor("X3", bit, lambda theta, x1, x2: like(x2) if theta else [half, half],
...            parents=["theta", "X1", "X2"]),
... ])
>>> p.condition(X1=1).marginal("theta")[1]                    # p(θ | x1)
Fraction(3, 4)
>>> p.condition(X1=1, X2=1).marginal("theta")[1]              # x2 taken as evidence
Fraction(9, 10)
>>> p.query("theta", given={"X1": 1}, do={"X2": 1})[1]        # x2 handed in: no evidence
Fraction(3, 4)
>>> p.query("theta", given={"X1": 1, "X3": 1}, do={"X2": 1})[1]   # the printed posterior
Fraction(9, 11)
>>> p.query("theta", given={"X1": 1, "X2": 1, "X3": 1})[1]    # counts p(x2 | x1, θ) too
Fraction(27, 29)

**One joint, two causal models.** Read backwards, X3, X2, X1, θ, the same joint answers the
same intervention as if it were evidence: there θ comes last and X2 is one of its causes.

>>> backwards = CausalModel.factorise(p.joint(), ["X3", "X2", "X1", "theta"])
>>> backwards.joint().marginal(*p.names).as_dict() == p.joint().as_dict()
True
>>> backwards.query("theta", given={"X1": 1, "X3": 1}, do={"X2": 1})[1]
Fraction(27, 29)

**Which way does the arrow point?** X causes Y or Y causes X. No single order serves both
hypotheses, so each has a causal model of its own, and a mixture intervenes in every one.
Seeing X = Y = 1 tells nothing; setting X = 1 and seeing Y = 1 does.

>>> X_Y = CausalModel([Factor("X", bit, [half, half]), Factor("Y", bit, like, ["X"])])
>>> Y_X = CausalModel([Factor("Y", bit, [half, half]), Factor("X", bit, like, ["Y"])])
>>> prior = Factor("H", ["X→Y", "Y→X"], [half, half])
>>> arrow = CausalMixture(prior, {"X→Y": X_Y, "Y→X": Y_X})
>>> arrow.query("H", given={"X": 1, "Y": 1})
{'X→Y': Fraction(1, 2), 'Y→X': Fraction(1, 2)}
>>> arrow.query("H", given={"Y": 1}, do={"X": 1})
{'X→Y': Fraction(3, 5), 'Y→X': Fraction(2, 5)}

**Prize or frog.** An expert opens the box that holds the prize. An agent that imitates it,
and takes its own choice for evidence, is sure of the prize before it looks.

>>> boxes = ("left", "right")
>>> frog = CausalModel([
...     Factor("prize", boxes, [half, half]),
...     Factor("a", boxes, lambda prize: {prize: 1}, parents=["prize"]),
... ])
>>> frog.query("prize", given={"a": "left"})
{'left': Fraction(1, 1), 'right': Fraction(0, 1)}
>>> frog.query("prize", do={"a": "left"})
{'left': Fraction(1, 2), 'right': Fraction(1, 2)}

**Decision theory never meets the difference.** To choose π* is to give π a Kronecker delta
for its distribution; then P(ω | π*) and P(ω | π ← π*) are one and the same.

>>> choice = CausalModel([
...     Factor("state", bit, [F(1, 3), F(2, 3)]),
...     Factor("pi", ["bet", "pass"], lambda state: {"bet": 1}, parents=["state"]),
...     Factor("omega", ["win", "lose"], lambda state, pi: [half, half] if pi == "pass"
...            else {"win": state, "lose": 1 - state}, parents=["state", "pi"]),
... ])
>>> choice.query("omega", given={"pi": "bet"})
{'win': Fraction(2, 3), 'lose': Fraction(1, 3)}
>>> choice.query("omega", do={"pi": "bet"}) == choice.query("omega", given={"pi": "bet"})
True
"""

from bayescontrol.causal.distribution import Distribution
from bayescontrol.causal.model import Causal, CausalMixture, CausalModel, Factor
from bayescontrol.errors import ImpossibleCondition, InvalidTable, UnknownVariable

__all__ = [
    "Causal",
    "CausalMixture",
    "CausalModel",
    "Distribution",
    "Factor",
    "ImpossibleCondition",
    "InvalidTable",
    "UnknownVariable",
]
