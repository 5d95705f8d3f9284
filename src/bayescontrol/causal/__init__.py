"""Finite causal models: conditioning on a variable and intervening on it.

    causal model     p(θ), p(X1 | θ), p(X2 | X1, θ), p(X3 | X1, X2, θ)
    condition        p(θ | x2)        keep the worlds in which X2 = x2, renormalise
    intervene        p(θ | X2 ← x2)   replace p(X2 | X1, θ) by the Kronecker delta δ(X2, x2)

Conditioning on X2 is evidence about its causes. Intervening is not: setting x2 teaches nothing
about them. An agent's actions are interventions; treating them so is all that the Bayesian control
rule adds to Bayes' rule. Tables of Fractions and integers are computed exactly.

**The statistician.** She observes x1, draws x2 from her model, gives it to the source and observes
x3. Here every X depends on θ, and X3 depends on x2 as well.

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
>>> p.query("theta", given={"X1": 1}, do={"X2": 1})[1]        # x2 set: no evidence
Fraction(3, 4)
>>> p.query("theta", given={"X1": 1, "X3": 1}, do={"X2": 1})[1]   # the posterior in the paper
Fraction(9, 11)
>>> p.query("theta", given={"X1": 1, "X2": 1, "X3": 1})[1]    # counts p(x2 | x1, θ) too
Fraction(27, 29)

**One joint, two causal models.** Factorised in the order X3, X2, X1, θ, the same joint treats the
same intervention as evidence: there θ comes last and X2 is one of its causes.

>>> backwards = CausalModel.factorise(p.joint(), ["X3", "X2", "X1", "theta"])
>>> backwards.joint().marginal(*p.names).as_dict() == p.joint().as_dict()
True
>>> backwards.query("theta", given={"X1": 1, "X3": 1}, do={"X2": 1})[1]
Fraction(27, 29)

**Does X cause Y, or Y cause X?** No single order fits both hypotheses, so each has its causal
model, and a mixture intervenes in every one. Observing X = Y = 1 is no evidence for either; setting
X = 1 and observing Y = 1 is.

>>> X_Y = CausalModel([Factor("X", bit, [half, half]), Factor("Y", bit, like, ["X"])])
>>> Y_X = CausalModel([Factor("Y", bit, [half, half]), Factor("X", bit, like, ["Y"])])
>>> prior = Factor("H", ["X→Y", "Y→X"], [half, half])
>>> arrow = CausalMixture(prior, {"X→Y": X_Y, "Y→X": Y_X})
>>> arrow.query("H", given={"X": 1, "Y": 1})
{'X→Y': Fraction(1, 2), 'Y→X': Fraction(1, 2)}
>>> arrow.query("H", given={"Y": 1}, do={"X": 1})
{'X→Y': Fraction(3, 5), 'Y→X': Fraction(2, 5)}

**Prize or frog.** An expert opens the box that holds the prize. An agent that imitates the expert
and treats its choice as evidence is certain of the prize before it looks.

>>> boxes = ("left", "right")
>>> frog = CausalModel([
...     Factor("prize", boxes, [half, half]),
...     Factor("a", boxes, lambda prize: {prize: 1}, parents=["prize"]),
... ])
>>> frog.query("prize", given={"a": "left"})
{'left': Fraction(1, 1), 'right': Fraction(0, 1)}
>>> frog.query("prize", do={"a": "left"})
{'left': Fraction(1, 2), 'right': Fraction(1, 2)}

**Decision theory does not see the difference.** Choosing π* gives π a Kronecker delta as its
distribution; then P(ω | π*) and P(ω | π ← π*) are equal.

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

from bayescontrol.causal.model import Causal, CausalMixture, CausalModel, Distribution, Factor

__all__ = ["Causal", "CausalMixture", "CausalModel", "Distribution", "Factor"]
