"""Models of the fixture logs: every belief class, every agent class, every built-in kind.

    BELIEFS    a named model over each belief class, built by the functions below
    AGENTS     a named model of each other agent that can be saved
    PROBLEMS   each built-in kind, with and without a schedule that holds a mode

The logs in `logs/v1/named.db`, `agents.db` and `problems.db` were written with these models. Do not
change what a case does, nor rename the classes of this module: the logs would no longer open.
Each case is a function, so that a test builds only what it opens.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from benchmarks import arena
from benchmarks.arena.agents.posterior_sampling import doubling_lengths

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    DiscreteMode,
    ExponentialBandit,
    FiniteBelief,
    GaussianBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
    LogitNormalBandit,
    PoissonBandit,
    SharedLinearBandit,
    baselines,
)
from bayescontrol._arrays import Arrays
from bayescontrol.alarms import (
    Alarm,
    Guarded,
    KrichevskyTrofimov,
    RestartedAlarm,
    StudentPredictor,
)
from bayescontrol.bandits import LaplaceLogit
from bayescontrol.bank import PI, Bank, Bumpless, PlantMode, Supervisor
from bayescontrol.baselines import (
    BanditPlan,
    BayesOptimalBandit,
    CertaintyEquivalence,
    GittinsAgent,
    GittinsTable,
    NaiveMixture,
)
from bayescontrol.baselines.forgetting import ForgettingLinearBelief, ForgettingSystemBelief
from bayescontrol.beliefs import ChangePointBelief, InteractingBelief, ResampleMoveBelief
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.durable import Model, named_model
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.lqr import (
    DeterminantDoubling,
    LinearQuadratic,
    LinearSystem,
    OutputMode,
    SystemPrior,
    double_integrator,
)
from bayescontrol.mdp import GibbsMDP, GibbsPrior, MDPModes, chain_mdp
from bayescontrol.schedules import (
    Every,
    Geometric,
    MinimumDwell,
    Schedule,
    WhenSituationReturns,
    doubling,
    every_step,
)
from bayescontrol.seeding import Stream
from bayescontrol.simulators import SimulatorMode, SimulatorNoise, next_state
from bayescontrol.situations import stay


class Case(NamedTuple):
    """A model or a problem, its questions x and its answers o."""

    model: Any
    question: Callable[[Stream], Any] = lambda rng: None
    answer: Callable[[Any, Any, Stream], Any] = lambda x, a, rng: rng.integers(2)
    schedule: Schedule = every_step


# -- answers ---------------------------------------------------------------------------------------


def _real(x: Any, a: Any, rng: Stream) -> float:
    return float(rng.normal())


def _positive(x: Any, a: Any, rng: Stream) -> float:
    return float(rng.random()) + 0.1


def _paid(x: Any, a: Any, rng: Stream) -> float:
    return float(rng.choice([-1.0, 0.0, 10.0]))


def _count(x: Any, a: Any, rng: Stream) -> int:
    return rng.integers(5)


def _step(x: Any, a: Any, rng: Stream) -> tuple[float, int]:
    return float(rng.integers(2)), rng.integers(3)


def _room(x: Any, a: Any, rng: Stream) -> tuple[float, str]:
    return float(rng.random()), f"room {rng.integers(3)}"


def _vector(n: int) -> Callable[[Any, Any, Stream], list[float]]:
    return lambda x, a, rng: [float(v) for v in rng.normal(size=n)]


def _measured(x: Any, a: Any, rng: Stream) -> tuple[list[float], float]:
    y = [float(v) for v in rng.normal(size=len(x))]
    return y, float(np.dot(x, x) + np.dot(a, a))


def _context(n: int) -> Callable[[Stream], list[float]]:
    return lambda rng: [float(v) for v in rng.normal(size=n)]


def _fraction(rng: Stream) -> float:
    return float(rng.random())


# -- modes and classes of a user -------------------------------------------------------------------


def lever(good: str, p: float = 0.9) -> DiscreteMode[Any, Any, Any]:
    """The lever `good` pays with probability p."""
    return DiscreteMode(
        lambda x: {good: 0.9, "none": 0.1},
        lambda x, a: {1: p, 0: 1 - p} if a == good else {1: 0.2, 0: 0.8},
        good,
    )


def two_levers() -> list[DiscreteMode[Any, Any, Any]]:
    """Left or right."""
    return [lever("left"), lever("right", 0.7)]


class Coin:
    """A mode without a name: P(1 | a) = p for its own action, 1 - p for the other."""

    def __init__(self, action: int, p: float) -> None:
        self.action, self.p = action, p

    def act(self, x: Any, rng: Stream) -> int:
        """Usually the preferred action, sometimes the other one."""
        return self.action if rng.random() < 0.8 else 1 - self.action

    def log_likelihood(self, x: Any, a: int, o: int) -> float:
        """ln P(o | m, a)."""
        p = self.p if a == self.action else 1 - self.p
        return math.log(p if o else 1 - p)


class Streak:
    """A mode with a private state: the number of successes in a row, at most `most`."""

    def __init__(self, action: int, most: int) -> None:
        self.action, self.most, self.name = action, most, f"streak {action} {most}"

    def start(self) -> int:
        """No successes yet."""
        return 0

    def advance(self, s: int, a: int, o: int) -> int:
        """Increment after a success, reset after a failure."""
        return min(s + 1, self.most) if o else 0

    def act(self, s: int, rng: Stream) -> int:
        """The action, less often after a streak."""
        return self.action if rng.random() < 0.9 - 0.1 * s else 1 - self.action

    def action_probabilities(self, s: int) -> dict[int, float]:
        """The distribution of `act`."""
        p = 0.9 - 0.1 * s
        return {self.action: p, 1 - self.action: 1 - p}

    def likelihood(self, s: int, a: int, o: int) -> float:
        """P(o | m, s, a)."""
        p = 0.5 + 0.1 * s if a == self.action else 0.3
        return p if o else 1 - p


class Dials:
    """An array of modes without names."""

    def __init__(self, p: list[float]) -> None:
        self.p = np.array(p)

    def __len__(self) -> int:
        return len(self.p)

    def __getitem__(self, m: int) -> Coin:
        return Coin(m % 2, float(self.p[m]))

    def likelihoods(self, x: Any, a: int, o: int) -> Any:
        """P(o | m, a) for all m."""
        local = np.arange(len(self.p)) % 2 == a
        p = np.where(local, self.p, 1 - self.p)
        return p if o else 1 - p


class LogDials(Dials):
    """The same in logarithms."""

    likelihoods = None  # type: ignore[assignment]

    def log_likelihoods(self, x: Any, a: int, o: int) -> Any:
        """ln P(o | m, a) for all m."""
        return np.log(Dials.likelihoods(self, x, a, o))


class Remembering(FiniteBelief[Any]):
    """A user's subclass of a library class."""


class Thermostat:
    """A user-defined belief: the mean of the observations, plus noise."""

    def __init__(self) -> None:
        self.n, self.total, self._last = 0, 0.0, 0.0

    def sample(self, rng: Stream) -> "Setting":
        """A temperature near the mean."""
        self._last = self.total / (self.n + 1) + rng.normal() / (self.n + 1)
        return self.last()

    def observe(self, x: Any, a: Any, o: float) -> None:
        """Add an observation."""
        self.n, self.total = self.n + 1, self.total + o

    def last(self) -> "Setting":
        """The last draw."""
        return Setting(self._last)

    def save(self) -> Arrays:
        """Three numbers."""
        return {"n": np.array(self.n), "total": np.array(self.total), "drawn": np.array(self._last)}

    def load(self, arrays: Arrays) -> None:
        """Restore them."""
        self.n, self.total = int(arrays["n"]), float(arrays["total"])
        self._last = float(arrays["drawn"])

    def copy(self) -> "Thermostat":
        """An independent copy."""
        twin = Thermostat()
        twin.__dict__.update(self.__dict__)
        return twin


class Setting(NamedTuple):
    """A temperature as a mode."""

    value: float

    def act(self, x: Any, rng: Stream) -> str:
        """Heat or wait."""
        return "heat" if self.value < rng.normal() else "wait"


class Alternating:
    """A user-defined agent: red, blue, red, blue, … and a coin toss after each success."""

    def __init__(self) -> None:
        self.t = self.won = 0

    def act(self, rng: Stream) -> str:
        """The next one."""
        self.t += 1
        toss = self.won and rng.random() < 0.5
        return ("red", "blue")[(self.t + int(toss)) % 2]

    def observe(self, a: str, o: int) -> None:
        """Remember whether it was a success."""
        self.won = int(o)

    def save(self) -> Arrays:
        """Two numbers."""
        return {"t": np.array(self.t), "won": np.array(self.won)}

    def load(self, arrays: Arrays) -> None:
        """Restore them."""
        self.t, self.won = int(arrays["t"]), int(arrays["won"])

    def copy(self) -> "Alternating":
        """An independent copy."""
        twin = Alternating()
        twin.__dict__.update(self.__dict__)
        return twin


# -- parts -----------------------------------------------------------------------------------------


def _draw(n: int, rng: Stream) -> Any:
    return rng.normal(size=(n, 2))


def _log_prior(theta: Any) -> Any:
    return -0.5 * (theta**2).sum(1)


def _log_likelihoods(theta: Any, x: Any, a: int, o: int) -> Any:
    return -np.log1p(np.exp(theta[:, a] * (1 - 2 * o)))


def _best(theta: Any, x: Any, rng: Stream) -> int:
    return int(theta.argmax())


def _likelihoods(theta: Any, x: Any, a: Any, o: Any) -> Any:
    return theta[:, a] if o else 1.0 - theta[:, a]


def _argmax(theta_m: Any, x: Any, state: Any) -> Any:
    return np.argmax(theta_m)


def _coins(belief: Callable[[list[Any]], Any]) -> Callable[[], Any]:
    """The control rule with a belief over four coins."""
    modes = [Coin(0, 0.9), Coin(0, 0.6), Coin(1, 0.8), Coin(1, 0.55)]
    return lambda: ControlRule(belief(modes))


def _one_situation() -> TabularModes:
    return TabularModes(
        policy=[[[0.8, 0.2]], [[0.3, 0.7]]],
        hypothesis=[[[[0.4, 0.6], [0.9, 0.1]]], [[[0.7, 0.3], [0.2, 0.8]]]],
    )


def _guarded(predictor: Any, rule: Any, delta: float = 0.5) -> Any:
    return Guarded(rule, Alarm(predictor, delta=delta), fallback=0)


def _pushes() -> list[Any]:
    """Two simulators, each with a policy of its own."""
    return [
        SimulatorMode(
            lambda x, u: 0.5 * np.asarray(x) + u, lambda x: 1.0, SimulatorNoise(1.0), name="push"
        ),
        SimulatorMode(
            lambda x, u: 0.5 * np.asarray(x) - u, lambda x: -1.0, SimulatorNoise(1.0), name="pull"
        ),
    ]


class Noisy:
    """A mode with a density: o = mean + noise for action 1, noise alone for action 0."""

    def __init__(self, mean: float) -> None:
        self.mean, self.name = mean, f"mean {mean}"

    def act(self, x: Any, rng: Stream) -> int:
        """Choose uniformly."""
        return rng.integers(2)

    def log_likelihood(self, x: Any, a: int, o: float) -> float:
        """ln of the normal density."""
        return -0.5 * (o - self.mean * a) ** 2 - 0.5 * math.log(2 * math.pi)


def _named(
    build: Callable[[], Any], *, accepts_late_feedback: bool | None = None, **settings: Any
) -> Callable[[str], Model]:
    return lambda name: named_model(
        name, version=2, build=build, settings=settings, accepts_late_feedback=accepts_late_feedback
    )


_GIBBS = GibbsPrior(mu0=0.1, precision=None)
_SYSTEM = SystemPrior(mean=[[0.5, 1.0]], precision=3.0)


def _allowed(x: Any) -> list[str]:
    return ["left", "right"] if x == "home" else ["left", "right", "wait"]


#: name -> (a function that names the model, questions, answers)
BELIEFS: dict[str, Case] = {
    # finitely many modes
    "finite": Case(_named(lambda: ControlRule(FiniteBelief(two_levers(), [0.3, 0.7])), bias=0.1)),
    "finite, held": Case(
        _named(lambda: ControlRule(FiniteBelief(two_levers()), schedule=Every(3)))
    ),
    "finite, floor": Case(
        _named(lambda: ControlRule(FiniteBelief(two_levers(), on_impossible=Floor(1e-6))))
    ),
    "finite, without names": Case(_named(_coins(FiniteBelief))),
    "finite, private state": Case(
        _named(lambda: ControlRule(FiniteBelief([Streak(0, 3), Streak(1, 2)])))
    ),
    "finite, situation moves": Case(
        _named(
            lambda: ControlRule(
                FiniteBelief(two_levers()), ("shop", 0), lambda x, a, o: (x[0], x[1] + o)
            )
        )
    ),
    "finite, declared not alone": Case(
        _named(lambda: ControlRule(FiniteBelief(two_levers())), accepts_late_feedback=False)
    ),
    "derived from finite": Case(_named(_coins(Remembering))),
    "tables": Case(_named(lambda: random_modes(4, situations=3, seed=1).agent())),
    "tables, held": Case(
        _named(
            lambda: random_modes(3, situations=3, seed=2).agent(
                schedule=MinimumDwell(2, WhenSituationReturns(0))
            )
        )
    ),
    "tables, one situation": Case(_named(lambda: _one_situation().agent())),
    "tables, names": Case(
        _named(
            lambda: TabularModes(
                policy=[[[1, 0]], [[0, 1]]],
                hypothesis=[[[[0.4, 0.6], [0.9, 0.1]]], [[[0.7, 0.3], [0.2, 0.8]]]],
                names=["up", "down"],
                prior=[0.25, 0.75],
            ).agent()
        )
    ),
    "MDPs": Case(
        _named(
            lambda: MDPModes(
                [chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.9, 0.1], start=1
            ).agent()
        ),
        answer=lambda x, a, rng: _possible(MDPModes([chain_mdp(3)], start=1), x, a, rng),
    ),
    "joint": Case(_named(lambda: JointBandit([[0.9, 0.1], [0.3, 0.9]], prior=[0.3, 0.7]).agent())),
    "growing chain": Case(
        _named(lambda: GrowingChain(scale=2).agent()),
        answer=lambda x, a, rng: _grown(GrowingChain(scale=2), x, a),
    ),
    "parametric": Case(
        _named(
            lambda: ParametricModes(
                [[0.9, 0.2], [0.2, 0.8]], likelihoods=_likelihoods, act=_argmax, compiled=False
            ).agent()
        )
    ),
    "own array of modes": Case(_named(lambda: ControlRule(FiniteBelief(Dials([0.9, 0.7, 0.6]))))),
    "own array in logarithms": Case(
        _named(lambda: ControlRule(FiniteBelief(LogDials([0.9, 0.7, 0.6]))))
    ),
    # finitely many modes that change
    "switching": Case(_named(_coins(lambda modes: SwitchingBelief(modes, hazard=0.1)))),
    "switching, table": Case(
        _named(
            lambda: ControlRule(
                SwitchingBelief(_one_situation(), transition=[[0.9, 0.1], [0.3, 0.7]]), 0, stay
            )
        )
    ),
    "fading": Case(_named(_coins(lambda modes: FadingBelief(modes, forgetting=0.8)))),
    "fading, private state": Case(
        _named(lambda: ControlRule(FadingBelief([Streak(0, 3), Streak(1, 2)], forgetting=0.9)))
    ),
    # particles
    "particles": Case(
        _named(lambda: ControlRule(ParticleBelief(_draw, _log_likelihoods, _best, 30, share=0.9)))
    ),
    "resample-move": Case(
        _named(
            lambda: ControlRule(
                ResampleMoveBelief(_draw, _log_prior, _log_likelihoods, _best, 30, share=0.9)
            )
        )
    ),
    "logit-normal": Case(
        _named(LogitNormalBandit([0.1, 0.3], [[1.0, 0.9], [0.9, 1.0]], particles=30).agent)
    ),
    # arms, each family
    "Bernoulli arms": Case(_named(BernoulliBandit(["red", ("a", 1), 3], prior=(2, 3)).agent)),
    "Gaussian arms": Case(_named(GaussianBandit(3, sd=0.5, prior=(1, 7)).agent), answer=_real),
    "Gaussian arms, unknown variance": Case(_named(GaussianBandit(2, sd=None).agent), answer=_real),
    "categorical arms": Case(
        _named(CategoricalBandit(["a", "b"], values=[-1, 0, 10]).agent), answer=_paid
    ),
    "Poisson arms": Case(_named(PoissonBandit(2, prior=(3, 0.5)).agent), answer=_count),
    "exponential arms": Case(_named(ExponentialBandit(2).agent), answer=_positive),
    "Bernoulli arms, held": Case(_named(lambda: BernoulliBandit(2).agent(schedule=Geometric(0.4)))),
    # contexts
    "linear": Case(_named(LinearBandit(["a", "b"], features=2, sd=0.3).agent), _context(2), _real),
    "logistic": Case(
        _named(lambda: LogisticBandit(["a", "b"], features=3).agent(laplace=True)), _context(3)
    ),
    "linear, held": Case(
        _named(lambda: LinearBandit(2, features=2).agent(schedule=doubling)), _context(2), _real
    ),
    "shared": Case(
        _named(SharedLinearBandit(["a", "b"], lambda x, a: [x, a == "a"], features=2).agent),
        _fraction,
        _real,
    ),
    "shared, logit": Case(
        _named(
            SharedLinearBandit(2, lambda x, a: [x, a, 1.0], features=3, link=LaplaceLogit()).agent
        ),
        _fraction,
    ),
    # MDPs and plants
    "Gibbs": Case(
        _named(lambda: GibbsMDP(["left", "right"], "home", _GIBBS).agent()), answer=_room
    ),
    "Gibbs, declared states": Case(
        _named(
            lambda: GibbsMDP(
                ["left", "right", "wait"],
                "home",
                _GIBBS,
                allowed=_allowed,
                states=["home", "room 0", "room 1", "room 2"],
            ).agent(schedule=Every(2))
        ),
        answer=_room,
    ),
    "Dirichlet": Case(_named(lambda: arena.PosteriorSampling.on(chain_mdp(3))), answer=_step),
    "linear plant": Case(
        _named(
            lambda: LinearQuadratic.on(
                double_integrator(), start=[1.0, -1.0], prior=SystemPrior()
            ).agent()
        ),
        answer=_vector(2),
    ),
    "linear plant, known noise, held": Case(
        _named(
            lambda: LinearQuadratic.on(
                double_integrator(), noise="known", prior=SystemPrior()
            ).agent(schedule=DeterminantDoubling())
        ),
        answer=_vector(2),
    ),
    "linear plant, unknown costs": Case(
        _named(LinearQuadratic(costs={"states": 2, "inputs": 1, "noise": 0.1}).agent),
        answer=_measured,
    ),
    # a user's own
    "own belief": Case(_named(lambda: ControlRule(Thermostat())), answer=_real),
}

#: The same for agents that are not a plain ControlRule.
AGENTS: dict[str, Case] = {
    "own agent": Case(_named(Alternating)),
    "naive": Case(_named(lambda: NaiveMixture(FiniteBelief(two_levers())))),
    "guarded": Case(
        _named(
            lambda: _guarded(KrichevskyTrofimov(2), random_modes(3, situations=2, seed=3).agent())
        )
    ),
    "guarded, density": Case(
        _named(
            lambda: _guarded(
                StudentPredictor(key=lambda x, a: a),
                ControlRule(FiniteBelief([Noisy(0.5), Noisy(1.0)])),
            )
        ),
        answer=lambda x, a, rng: 3.0 + float(rng.normal()),
    ),
    "certainty equivalence": Case(
        _named(
            lambda: CertaintyEquivalence.on(
                double_integrator(), start=[1.0, 0.0], exploration=0.5, warm_up=2
            )
        ),
        answer=_vector(2),
    ),
    "lazy Thompson sampling": Case(
        _named(
            lambda: LinearQuadratic.on(double_integrator(), prior=SystemPrior()).agent(
                schedule=DeterminantDoubling()
            )
        ),
        answer=_vector(2),
    ),
    "epsilon-greedy": Case(_named(lambda: baselines.EpsilonGreedy(3, epsilon=0.3))),
    "softmax": Case(_named(lambda: baselines.Softmax(["a", "b"], temperature=0.3))),
    "UCB1": Case(_named(lambda: baselines.UCB1(3))),
    "UCB-tuned": Case(_named(lambda: arena.UCBTuned(3))),
    "MOSS": Case(_named(lambda: arena.MOSS(3, horizon=100))),
    "KL-UCB": Case(_named(lambda: baselines.KLUCB(3, c=1.0))),
    "Bayes-UCB": Case(_named(lambda: arena.BayesUCB(3))),
    "knowledge gradient": Case(_named(lambda: arena.KnowledgeGradient(3, horizon=100))),
    "information-directed": Case(_named(lambda: arena.InformationDirected(2))),
    "uniform levers": Case(_named(lambda: baselines.UniformLevers(3))),
    "oracle": Case(_named(lambda: baselines.Oracle(3, biases=[0.2, 0.9, 0.5]))),
    "Gittins": Case(_named(lambda: GittinsAgent(["a", "b"], GittinsTable(0.9, 20)))),
    "Bayes-optimal": Case(_named(lambda: BayesOptimalBandit(BanditPlan(2, horizon=5)))),
    "Q-learning": Case(_named(lambda: baselines.QLearning(3, 2, gamma=0.9)), answer=_step),
    "R-learning": Case(_named(lambda: baselines.RLearning(3, 2)), answer=_step),
    "Bayesian Q-learning": Case(_named(lambda: arena.BayesianQ(3, 2)), answer=_step),
    "posterior sampling, doubling": Case(
        _named(
            lambda: arena.PosteriorSampling.on(
                chain_mdp(3), start=2, ends=doubling_lengths, rewards="transition"
            )
        ),
        answer=_step,
    ),
    "UCRL2": Case(_named(lambda: arena.UCRL2(3, 2, bounds=(0.0, 1.0))), answer=_step),
    "BAMCP": Case(
        _named(
            lambda: arena.BAMCP(
                3, 2, [(r, y) for r in (0.0, 1.0) for y in range(3)], depth=3, simulations=50
            )
        ),
        answer=_step,
    ),
    "optimal policy": Case(_named(lambda: baselines.OptimalPolicy(chain_mdp(3))), answer=_step),
}


def _possible(modes: TabularModes, x: Any, a: Any, rng: Stream) -> int:
    p = modes.hypothesis[0, x, a]
    return int(np.flatnonzero(p)[rng.integers(int((p > 0.0).sum()))])


def _grown(chain: GrowingChain, x: Any, a: Any) -> int:
    t, _, n = chain.advance(x, a, 0)
    return int(a == 0 and n >= chain.required(t))


def _tables() -> TabularModes:
    return random_modes(4, situations=3, seed=1)


def _gibbs() -> GibbsMDP:
    return GibbsMDP(["left", "right"], "home", GibbsPrior(precision=None), sweeps=2)


def _plant() -> LinearQuadratic:
    return LinearQuadratic([[2.0]], [[0.1]], noise=[[0.5]], prior=_SYSTEM, tries=9)


#: Each kind with at least two schedules: name -> (problem, questions, answers, schedule).
PROBLEMS: dict[str, Case] = {
    "bernoulli": Case(BernoulliBandit(["red", ("a", 1), 3], prior=[(2, 3), (1, 1), (0.5, 4)])),
    "bernoulli, every 3": Case(BernoulliBandit(2), schedule=Every(3)),
    "gaussian": Case(GaussianBandit(3, sd=0.1, prior=(1 / 3, 7)), answer=_real),
    "gaussian, geometric": Case(
        GaussianBandit(2, sd=None, prior=(0, 1, 2, 3)), answer=_real, schedule=Geometric(0.5)
    ),
    "categorical": Case(CategoricalBandit(["a", "b"], values=[-1, 0, 10]), answer=_paid),
    "categorical, doubling": Case(
        CategoricalBandit(2, values=[-1, 0, 10]), answer=_paid, schedule=doubling
    ),
    "poisson": Case(PoissonBandit(2, prior=(3, 0.3)), answer=_count),
    "poisson, dwell": Case(PoissonBandit(2), answer=_count, schedule=MinimumDwell(3)),
    "exponential": Case(ExponentialBandit(2), answer=_positive),
    "exponential, dwell, geometric": Case(
        ExponentialBandit(["a", "b"], prior=(3, 0.1)),
        answer=_positive,
        schedule=MinimumDwell(2, Geometric(0.5)),
    ),
    "linear": Case(LinearBandit(["a", "b"], features=2, sd=0.3), _context(2), _real),
    "linear, doubling": Case(
        LinearBandit(2, features=2, prior=([0.1, 0.2], [[2, 0.1], [0.1, 1]])),
        _context(2),
        _real,
        doubling,
    ),
    "logistic": Case(LogisticBandit(["a", "b"], features=3), _context(3)),
    "logistic, every 2": Case(LogisticBandit(2, features=2), _context(2), schedule=Every(2)),
    "joint": Case(JointBandit([[0.9, 0.1], [0.3, 0.9]], prior=[0.3, 0.7])),
    "joint, geometric": Case(JointBandit([[0.8, 0.1], [0.3, 0.9]]), schedule=Geometric(0.3)),
    "logit-normal": Case(LogitNormalBandit([0.1, 0.3], [[1.0, 0.9], [0.9, 1.0]], particles=50)),
    "logit-normal, every 4": Case(
        LogitNormalBandit([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], particles=30), schedule=Every(4)
    ),
    "tabular": Case(_tables()),
    "tabular, one situation": Case(_one_situation()),
    "tabular, home": Case(_tables(), schedule=WhenSituationReturns(0)),
    "tabular, MDPs, dwell, home": Case(
        MDPModes([chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.9, 0.1], start=1),
        answer=lambda x, a, rng: _possible(MDPModes([chain_mdp(3)], start=1), x, a, rng),
        schedule=MinimumDwell(2, WhenSituationReturns()),
    ),
    "growing chain": Case(
        GrowingChain(scale=2), answer=lambda x, a, rng: _grown(GrowingChain(scale=2), x, a)
    ),
    "growing chain, doubling": Case(
        GrowingChain(scale=1),
        answer=lambda x, a, rng: _grown(GrowingChain(scale=1), x, a),
        schedule=doubling,
    ),
    "gibbs": Case(_gibbs(), answer=_room),
    "gibbs, declared, home": Case(
        GibbsMDP(2, 0, GibbsPrior(mu0=0.1), states=4, partial=1, recentre=False),
        answer=_step,
        schedule=WhenSituationReturns(0),
    ),
    "plant": Case(_plant(), answer=_vector(1)),
    "plant, determinant": Case(
        LinearQuadratic.on(double_integrator(), start=[1.0, -1 / 3], prior=SystemPrior()),
        answer=_vector(2),
        schedule=DeterminantDoubling(1.5),
    ),
    "plant, unknown costs, dwell": Case(
        LinearQuadratic(
            costs={"states": 2, "inputs": 1, "noise": 0.1}, prior={"scatter": [[1, 0.1], [0.1, 1]]}
        ),
        answer=_measured,
        schedule=MinimumDwell(3, DeterminantDoubling()),
    ),
}

#: Agents that could not be saved when the other files were written.
WRAPPED: dict[str, Case] = {
    "bumpless": Case(
        _named(lambda: Bumpless(ControlRule(FiniteBelief(_pushes()), [0.0], next_state), steps=3)),
        answer=_vector(1),
    ),
}


def _with_belief(problem: Any, belief: Any) -> ControlRule[Any, Any, Any, Any]:
    """The agent of a problem, with another belief."""
    agent = problem.agent()
    return ControlRule(belief, agent.x, agent.advance)


def _carts() -> list[OutputMode]:
    """Two carts that are seen through noise; they differ in the sign of the push."""
    systems = [LinearSystem([[1, 1], [0, 1]], [[0.0], [b]], np.eye(2), [[1]]) for b in (1.0, -1.0)]
    return [OutputMode(s, C=[[1, 0]], V=[[1]], name=f"cart {i}") for i, s in enumerate(systems)]


_LINEAR = LinearBandit(["a", "b"], features=2, sd=0.3)
_PLANT = LinearQuadratic.on(double_integrator(), start=[1.0, -1 / 3], prior=SystemPrior())

#: Worlds that change: built-in problems.
CHANGING: dict[str, Case] = {
    "changing": Case(BernoulliBandit(["red", "blue"]).changing(window=6, starts=9)),
    "changing, held": Case(
        GaussianBandit(2, sd=0.5).changing(hazards=[0.1, 0.01]), answer=_real, schedule=Every(3)
    ),
    "changing, per arm": Case(PoissonBandit(2).changing(per_arm=True), answer=_count),
    "changing contexts": Case(_LINEAR.changing(), question=_context(2), answer=_real),
    "changing plant": Case(_PLANT.changing(), answer=_vector(2)),
}

#: Beliefs and alarms for worlds that change.
CHANGING_BELIEFS: dict[str, Case] = {
    "change points": Case(
        _named(lambda: _with_belief(_LINEAR, ChangePointBelief(_LINEAR.belief(), starts=5))),
        question=_context(2),
        answer=_real,
    ),
    "switching, learned": Case(
        _named(_coins(lambda modes: SwitchingBelief(modes, hazard=[0.1, 0.01])))
    ),
    "interacting": Case(
        _named(lambda: ControlRule(InteractingBelief(_carts(), hazard=[0.1, 0.01]))),
        answer=_vector(1),
    ),
    "forgetting contexts": Case(
        _named(lambda: _with_belief(_LINEAR, ForgettingLinearBelief(_LINEAR, forgetting=0.9))),
        question=_context(2),
        answer=_real,
    ),
    "forgetting plant": Case(
        _named(lambda: _with_belief(_PLANT, ForgettingSystemBelief(_PLANT, forgetting=0.9))),
        answer=_vector(2),
    ),
    "guarded, restarted": Case(
        _named(
            lambda: Guarded(
                ControlRule(FiniteBelief([Noisy(0.5), Noisy(1.0)])),
                RestartedAlarm(StudentPredictor(key=lambda x, a: a), mean_time=1e4),
            )
        ),
        answer=lambda x, a, rng: 3.0 + float(rng.normal()),
    ),
}

_REGULATED: dict[str, Any] = {
    "backup": [[0.3, 1.0]], "limits": (-2, 3), "setpoint": [1.0, 0.0], "integral": [0.1, 0.0],
}  # fmt: skip

#: Linear plants in their own units.
REGULATORS: dict[str, Case] = {
    "regulator, search": Case(
        _named(LinearQuadratic(np.eye(2), [[1.0]], prior="learned", **_REGULATED).agent),
        answer=_vector(2),
    ),
    "regulator, held": Case(
        _named(
            lambda: LinearQuadratic(np.eye(2), [[1.0]], prior=SystemPrior(), **_REGULATED).agent(
                schedule=DeterminantDoubling()
            )
        ),
        answer=_vector(2),
    ),
}


def _motors() -> list[PlantMode]:
    return [
        PlantMode(([[0.8]], [[g]], [[1.0]]), PI(0.3 / g, 0.1 / g), process_noise=0.3,
                  sensor_noise=0.5, limits=(-5.0, 5.0), name=f"gain {g:+}")
        for g in (1.0, -1.0, 0.5)
    ]  # fmt: skip


#: Banks of plants, and supervisors.
BANKS: dict[str, Case] = {
    "bank": Case(_named(lambda: Bank(_motors(), setpoint=2.0).agent()), answer=_real),
    "bank, most probable": Case(
        _named(
            lambda: Bank(_motors(), setpoint=2.0).agent(
                choose="most probable", hysteresis=2.0, dwell=3
            )
        ),
        answer=_real,
    ),
    "bank that switches": Case(
        _named(lambda: Bank(_motors(), setpoint=2.0, hazard=[0.01, 0.1]).agent()), answer=_real
    ),
    "supervisor": Case(_named(lambda: Supervisor(FiniteBelief([Noisy(0.5), Noisy(1.0)]), dwell=3)),
                       answer=_real),
}  # fmt: skip

_LOGISTIC = LogisticBandit(["a", "b"], features=2)
#: A logistic bandit that changes. The file was written with version 1 of `changing`.
CHANGING_LOGISTIC: dict[str, Case] = {
    "changing logistic": Case(_LOGISTIC.changing(starts=9), _context(2)),
    "changing logistic, per arm": Case(_LOGISTIC.changing(per_arm=True, starts=9), _context(2)),
}

#: The same kinds in version 2, which matches moments.
MOMENTS: dict[str, Case] = {
    "logistic": Case(LogisticBandit(["a", "b"], features=3), _context(3)),
    "logistic, every 2": Case(LogisticBandit(2, features=2), _context(2), schedule=Every(2)),
    **CHANGING_LOGISTIC,
}

#: file -> its logs
FILES: dict[str, Mapping[str, Case]] = {
    "named": BELIEFS,
    "agents": AGENTS,
    "problems": PROBLEMS,
    "wrapped": WRAPPED,
    "changing": CHANGING,
    "changing_beliefs": CHANGING_BELIEFS,
    "regulators": REGULATORS,
    "banks": BANKS,
    "changing_logistic": CHANGING_LOGISTIC,
    "moments": MOMENTS,
}
#: The files with logs of built-in models.
BUILT_IN = ("problems", "changing", "changing_logistic", "moments")


def model_of(file: str, name: str) -> Model | None:
    """Return the model to open this log with; None for a built-in model."""
    if file in BUILT_IN:
        return None
    model: Model = FILES[file][name].model(name)
    return model
