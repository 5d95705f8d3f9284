"""Interacting multiple models (IMM): one filter per mode, for a plant that switches between modes.

    mixing    w_ij = P(m_t = i | m_{t+1} = j, âo_≤t)  ∝  P(m_{t+1} = j | i) P(m_t = i | âo_≤t)
              s_j ← the state with the mean and covariance of Σ_i w_ij N(x̂_i, Σ_i)

Exact switching would need a filter for every sequence of modes. After each step the filter of mode
j starts from one Gaussian that stands for all sequences that end in j (Blom & Bar-Shalom 1988,
IEEE Transactions on Automatic Control 33:780). If the hazard is learned, the filters are shared by
all hazards, and w_ij is averaged over P(h | m_t, âo_≤t): the weights of the mixture are right, but
a filter for each hazard would be a little more accurate.
"""

from typing import Any, ClassVar

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import ModeArrayQueries, has, mode_label, require
from bayescontrol.beliefs.finite import M
from bayescontrol.beliefs.switching import SwitchingBelief
from bayescontrol.beliefs.weights import Weights
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import Stateful, StateMixing


def mix_gaussians(
    means: ArrayLike, covariances: ArrayLike, weights: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the covariance of the mixture Σ_i w_i N(means[i], covariances[i]).

    For states with a single number, give lists of means and variances.

    >>> mean, variance = mix_gaussians([0.0, 2.0], [1.0, 1.0], [0.5, 0.5])
    >>> float(mean), float(variance)
    (1.0, 2.0)
    """
    m, S, w = (np.asarray(v, np.float64) for v in (means, covariances, weights))
    mean = np.asarray(w @ m)
    d = m - mean
    spread = d * d if m.ndim == 1 else d[:, :, None] * d[:, None, :]
    return mean, np.asarray(np.tensordot(w, S + spread, 1))


class InteractingBelief(SwitchingBelief[M]):
    """Interacting multiple models: switching over filters, approximately.

    Every mode has private state and `mix_states(states, weights)`, which returns one state for a
    mixture of the states of all modes; `mix_gaussians` computes its mean and covariance. Hazards
    and tables are those of `SwitchingBelief`.

    `modes` are the filters. `prior`, `hazard`, `transition`, `hazard_prior` and `on_impossible` are
    as in `SwitchingBelief`; `shared_state` must be False, because every filter has its own state.

    >>> from bayescontrol.bank import Bank, PlantMode
    >>> def cart(push):
    ...     plant = [[1, 1], [0, 1]], [[0], [push]], [[1, 0]]         # A, B and C
    ...     gain = [[0.4 / push, 1.2 / push]]
    ...     return PlantMode(plant, gain, process_noise=1, sensor_noise=1, name=f"push {push}")
    >>> bank = Bank([cart(1.0), cart(-1.0)], hazard=[0.001, 0.01, 0.1], same_states=True)
    >>> belief, x = bank.belief(), bank.first_signals()
    >>> for o in (0.0, 1.0, 3.0, 6.0, 10.0):
    ...     belief.observe(x, 1.0, o)
    >>> belief.skip(x, 1.0)                                          # the observation was lost
    >>> belief
    InteractingBelief(2 modes after 5 observations: push 1.0 0.9..., push -1.0 0.0...)
    """

    format_name: ClassVar[str] = "InteractingBelief"
    #: The result of `_switch` in this step; `_advance_states` is called before `_predict`.
    _switched: tuple[FloatArray, FloatArray]

    def _require_switchable(self, m: int, mode: Any) -> None:
        """Raise MissingCapability unless the mode has a private state that can be mixed."""
        label = mode_label(m, mode)
        if self.shared_state or not has(mode, Stateful):
            raise MissingCapability(
                f"{label} has no private state of its own: InteractingBelief needs a filter in "
                "every mode. For modes without private state, or with shared_state=True, use "
                "SwitchingBelief"
            )
        require(mode, StateMixing, label)

    def _advance_states(self, x: Any, a: Any, o: Any) -> None:
        """Advance all filters, then mix their states. An error changes nothing.

        The posterior is that of m_t: it is conditioned on o_t, and modes switch after this call.
        """
        states, v = self._hypotheses.advanced_states(x, a, o), self.posterior()
        if self._table is None:
            self._switched = self._switch(v)
        if isinstance(self._hypotheses, ModeArrayQueries):  # one object, one state for all modes
            modes, s = self._hypotheses.modes, states[0]
            if self._table is None:
                (_, stays, leaves), _ = self._switched
                s = modes.mix_by_hazard(s, stays, leaves, self._prior)
            else:
                s = modes.mix(s, self._flow(v))
            self._hypotheses.states[0] = s
            return
        flow = self._flow(v)  # P(m_t = i, m_{t+1} = j | âo_≤t)
        mixed = states[:]
        for j, p_next in enumerate(flow.sum(0)):  # P(m_{t+1} = j | âo_≤t)
            # Nothing to mix if j is ruled out or retired (0), or can only follow itself.
            if p_next > 0.0 and flow[j, j] != p_next:
                mode: Any = self.modes[j]
                sources = np.flatnonzero(flow[:, j])  # a mode that is ruled out may have any state
                weights = flow[sources, j] / p_next  # w_ij
                mixed[j] = mode.mix_states([states[i] for i in sources], weights)
        self._hypotheses.states[:] = mixed

    def _flow(self, v: FloatArray) -> FloatArray:
        """Return P(m_t = i, m_{t+1} = j | âo_≤t) as a table; v is P(m_t | âo_≤t)."""
        if self._table is not None:
            return np.asarray(v[:, None] * self._table)
        (_, stays, leaves), _ = self._switched
        return np.asarray(np.diag(stays) + np.outer(leaves, self._prior))

    def _predict(self, current: Weights) -> Weights:
        if self._table is not None:
            return super()._predict(current)
        (predicted, _, _), self._given = self._switched
        return Weights(predicted)
