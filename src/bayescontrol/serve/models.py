"""The models that can be made over HTTP, as their settings are written in JSON.

    model, settings  →  agent        act(situation)  →  action        observe(observation)

Each with one example that is valid as it stands: the settings, a situation where it decides by
one, and an observation.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Setting(NamedTuple):
    """A setting: the shape of its value in JSON, and what it means.

    >>> MODELS["bernoulli-bandit"].settings["arms"].shape
    'list of names, or their number'
    """

    shape: str
    meaning: str


class ModelDoc(NamedTuple):
    """What a model is, its settings, and an example.

    >>> MODELS["poisson-bandit"].example
    {'arms': ['short', 'long']}
    """

    about: str
    settings: Mapping[str, Setting]
    example: Mapping[str, Any]
    observation: Any
    situation: Any = None
    feedback: str = ""


_ARMS: Final = Setting("list of names, or their number", "What there is to choose from.")
_ACTIONS: Final = Setting("list of names, or their number", "What it can do.")
_FEATURES: Final = Setting("whole number", "The length d of a situation.")
_WEIGHTS: Final = Setting(
    "[mean, precision]",
    "Of the weights of an arm: a number, a list of d, or one such list for each arm; and a "
    "number, a d × d matrix, or one for each arm. [0, 1] unless given.",
)
#: Every model has it.
SCHEDULE: Final = Setting(
    '["every_step"], ["doubling"], ["Every", k], ["Geometric", p], ["WhenSituationReturns", home], '
    '["MinimumDwell", steps, schedule]; of linear-quadratic also ["DeterminantDoubling", factor]',
    "When another mode is drawn from the posterior.",
)


def _rows(each: str, meaning: str) -> Setting:
    return Setting(f"{each}, or one such list for each arm", meaning)


MODELS: Final[dict[str, ModelDoc]] = {
    "bernoulli-bandit": ModelDoc(
        "Arms that pay 0 or 1.",
        {
            "arms": _ARMS,
            "prior": _rows("[α, β]", "Beta(α, β) over what an arm pays; [1, 1] unless given."),
        },
        {"arms": ["red", "blue"], "prior": [1, 1]},
        1,
        feedback="0 or 1",
    ),
    "gaussian-bandit": ModelDoc(
        "Arms that pay a number with Gaussian noise.",
        {
            "arms": _ARMS,
            "sd": Setting(
                "number or null", "σ of the noise, 1 unless given; null: unknown, and learnt."
            ),
            "prior": _rows(
                "[mean, sd] where the noise is known, else [μ, κ, α, β]",
                "What an arm pays on average, on the scale of your rewards: N(mean, sd²), [0, 1] "
                "unless given; or normal-gamma, [0, 1, 1, 1] unless given.",
            ),
        },
        {"arms": ["red", "blue"], "sd": 2.0, "prior": [10, 5]},
        11.5,
        feedback="a number",
    ),
    "categorical-bandit": ModelDoc(
        "Arms that pay one of a few values.",
        {
            "arms": _ARMS,
            "values": Setting("list of K different numbers", "What an arm may pay."),
            "prior": _rows("list of K numbers", "Dirichlet(α_1, …, α_K); all 1 unless given."),
        },
        {"arms": ["red", "blue"], "values": [-1, 0, 10]},
        10,
        feedback="one of the values",
    ),
    "poisson-bandit": ModelDoc(
        "Arms that pay counts.",
        {
            "arms": _ARMS,
            "prior": _rows(
                "[a, b]", "Gamma(a, rate b) over the mean of an arm; [1, 1] unless given."
            ),
        },
        {"arms": ["short", "long"]},
        3,
        feedback="a whole number from 0 on",
    ),
    "exponential-bandit": ModelDoc(
        "Arms that pay exponential amounts, as times are.",
        {
            "arms": _ARMS,
            "prior": _rows(
                "[a, b]", "Gamma(a, rate b) over 1 / mean of an arm; [2, 1] unless given."
            ),
        },
        {"arms": ["short", "long"]},
        0.7,
        feedback="a number above 0",
    ),
    "linear-bandit": ModelDoc(
        "Arms that pay x·w_a and Gaussian noise in situation x.",
        {
            "arms": _ARMS,
            "features": _FEATURES,
            "sd": Setting("number", "σ of the noise, 1 unless given."),
            "prior": _WEIGHTS,
        },
        {"arms": ["red", "blue"], "features": 2, "sd": 0.5},
        0.3,
        [1.0, 0.2],
        "a number",
    ),
    "logistic-bandit": ModelDoc(
        "Arms that pay 1 with probability σ(x·w_a) in situation x, else 0.",
        {"arms": _ARMS, "features": _FEATURES, "prior": _WEIGHTS},
        {"arms": ["red", "blue"], "features": 2},
        1,
        [1.0, 0.2],
        "0 or 1",
    ),
    "joint-bandit": ModelDoc(
        "Arms 0, 1, … that pay 0 or 1, by one of M joint hypotheses.",
        {
            "biases": Setting(
                "M lists of one number for each arm",
                "biases[m][a]: the probability that arm a pays 1, if hypothesis m is true.",
            ),
            "prior": Setting("list of M probabilities", "P(m); equal unless given."),
        },
        {"biases": [[0.9, 0.1], [0.1, 0.9]], "prior": [0.5, 0.5]},
        1,
        feedback="0 or 1",
    ),
    "logit-normal-bandit": ModelDoc(
        "Arms 0 … N-1 that pay 0 or 1 and are akin: their log-odds are jointly Gaussian.",
        {
            "mean": Setting("list of N numbers", "The mean log-odds of each arm."),
            "covariance": Setting(
                "N × N matrix", "Of the log-odds; symmetric and positive definite."
            ),
            "particles": Setting("whole number", "How many carry the belief; 1000 unless given."),
        },
        {"mean": [0.0, 0.0], "covariance": [[1.0, 0.9], [0.9, 1.0]]},
        1,
        feedback="0 or 1",
    ),
    "tabular-modes": ModelDoc(
        "M modes as tables of probabilities. Situations x, actions a and observations o are "
        "numbers from 0 on.",
        {
            "policy": Setting("list [m][x][a]", "P(a | m, x)."),
            "hypothesis": Setting("list [m][x][a][o]", "P(o | m, x, a)."),
            "successor": Setting(
                "list [x][a][o] of situations",
                "The situation that comes next; needed if there are several.",
            ),
            "start": Setting("whole number", "The first situation; 0 unless given."),
            "names": Setting("list of M texts", "What the modes are called."),
            "prior": Setting("list of M probabilities", "P(m); equal unless given."),
            "labels": Setting("null", "Leave it out: a log does not keep it."),
        },
        {
            "policy": [[[1, 0]], [[0, 1]]],
            "hypothesis": [[[[0.2, 0.8], [0.8, 0.2]]], [[[0.8, 0.2], [0.2, 0.8]]]],
            "names": ["prize at 0", "prize at 1"],
        },
        1,
        feedback="the number of what was observed",
    ),
    "growing-chain": ModelDoc(
        "Two modes, A and B: at step t the last ⌈scale · √t⌉ actions must be the right ones. "
        "A counterexample of the theory, not for use.",
        {"scale": Setting("whole number", "How fast the chain grows; 10 unless given.")},
        {"scale": 2},
        0,
        feedback="0 or 1",
    ),
    "gibbs-mdp": ModelDoc(
        "A Markov decision process whose states are found on the way, by Gibbs sampling.",
        {
            "actions": _ACTIONS,
            "start": Setting("any value", "The first state."),
            "prior": Setting(
                '{"dict": [["mu0", …], ["lambda0", …], ["precision", …]]}',
                "mu0 and lambda0: mean and precision of a transition's worth before it was seen; "
                "precision: of the rewards, null: learnt. Each 1 unless given. With null also "
                "shape and rate.",
            ),
            "states": Setting(
                "list of names, their number, or null", "All of them; null: they are found."
            ),
            "sweeps": Setting("whole number", "Of the sampler at each decision; 1 unless given."),
            "partial": Setting("whole number", "States that a sweep visits; 0, all, unless given."),
            "recentre": Setting(
                "true or false", "Whether the drift of the sampler is taken out; it is."
            ),
        },
        {"actions": ["left", "right"], "start": "home", "prior": {"dict": [["precision", 10]]}},
        {"tuple": [0.5, "kitchen"]},
        feedback='{"tuple": [reward, next state]}',
    ),
    "linear-quadratic": ModelDoc(
        "A linear plant of unknown A and B: y = A x + B u + noise, with costs xᵀQx + uᵀRu.",
        {
            "Q": Setting("n × n matrix", "The cost of a state of n numbers; or give costs."),
            "R": Setting("m × m matrix", "The cost of an input of m numbers; or give costs."),
            "costs": Setting(
                '{"dict": [["states", n], ["inputs", m], ["noise", …], ["mean", …], '
                '["deviation", …]]}',
                "Instead of Q and R, if they are unknown: they are learnt. Each 1 unless given, "
                "but for n and m.",
            ),
            "noise": Setting("n × n matrix or null", "W, its covariance; null: unknown."),
            "prior": Setting(
                '{"dict": [["mean", …], ["precision", …], ["scatter", …], ["dof", …]]}',
                "Of [A B] and W: 0, 1, 1 and n + 2 unless given. mean: one number for every entry, "
                "or n × (n + m); precision and scatter: a number, or a matrix.",
            ),
            "start": Setting("list of n numbers", "The first state; 0 unless given."),
            "tries": Setting("whole number", "Systems drawn for one decision at most; 100."),
        },
        {"Q": [[1, 0], [0, 1]], "R": [[1]], "start": [1.0, 0.0]},
        [0.9, -0.1],
        feedback='the next state; with costs {"tuple": [next state, cost]}',
    ),
}
