"""Open Bandit Pipeline: its estimators of the value of a policy.

obp imports PyTorch for its neural networks, which the estimators do not use. An empty module stands
for it, so that PyTorch need not be installed.
"""

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from benchmarks.peers.open_bandit import (
    CAMPAIGNS,
    FROM_RANDOM,
    FROM_THOMPSON,
    POSITIONS,
    Question,
    ask,
    question,
    read_log,
)
from benchmarks.peers.worker import serve


def _empty_torch() -> None:
    class Empty:
        """Any class of PyTorch."""

    def module(name: str, **content: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        made.__dict__.update(content)
        sys.modules[name] = made
        return made

    data = module("torch.utils.data", Dataset=Empty, DataLoader=Empty)
    module(
        "torch", Tensor=Empty, nn=module("torch.nn"), optim=module("torch.optim"),
        utils=module("torch.utils", data=data),
    )  # fmt: skip


def estimator(player: str, asked: Question, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return an estimator with default settings, and the arguments of its methods."""
    from obp.ope import (  # type: ignore[import-not-found] # in a separate environment
        DirectMethod,
        DoublyRobust,
        InverseProbabilityWeighting,
        RegressionModel,
        SelfNormalizedInverseProbabilityWeighting,
    )
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    estimators = {
        "IPW": InverseProbabilityWeighting,
        "SNIPW": SelfNormalizedInverseProbabilityWeighting,
        "DM": DirectMethod,
        "DR": DoublyRobust,
    }
    log = asked.log
    columns = {
        "reward": log.reward.astype(int),
        "action": log.action,
        "position": log.position,
        "pscore": log.propensity,
        "action_dist": np.tile(asked.policy, (len(log.action), 1, 1)),
    }
    if player in ("DM", "DR"):
        # The logs have too few clicks for a model of each position.
        model = RegressionModel(
            n_actions=len(asked.policy), base_model=LogisticRegression(max_iter=1000)
        )
        predicted = model.fit_predict(
            context=log.context, action=log.action, reward=columns["reward"], n_folds=3,
            random_state=seed,
        )  # fmt: skip
        columns["estimated_rewards_by_reg_model"] = np.repeat(predicted, POSITIONS, axis=2)
    return estimators[player](), columns


def estimate(player: str, asked: Question, seed: int) -> float:
    """Return the estimated value of the policy."""
    chosen, columns = estimator(player, asked, seed)
    return float(chosen.estimate_policy_value(**columns))


def print_whole(folder: str) -> None:
    """Print the estimates from the whole logs, per 1,000 items, with bootstrap intervals."""
    for campaign in CAMPAIGNS:
        logs = [read_log(folder, name, campaign) for name in ("random", "bts")]
        for world in (FROM_RANDOM, FROM_THOMPSON):
            shown = []
            for player in ("IPW", "SNIPW", "DM", "DR"):
                chosen, columns = estimator(player, ask(world, *logs), 0)
                found = chosen.estimate_interval(
                    **columns, n_bootstrap_samples=500, random_state=0
                ).values()
                value = chosen.estimate_policy_value(**columns)
                low, high = (1000 * bound for bound in sorted(found)[:: len(found) - 1])
                shown.append(f"{player} {1000 * value:.2f} ({low:.2f} to {high:.2f})")
            print(f"{campaign}, {world}: " + "; ".join(shown), flush=True)


def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
    """Prepare a question; its score is the relative error of the estimate."""
    player, seed = request["player"], request["seed"]
    asked = question(request["data"], request["world"], run)
    if run == 0:
        estimate(player, asked, seed)  # import everything
    return lambda: abs(estimate(player, asked, seed) / asked.truth - 1.0)


if __name__ == "__main__":
    _empty_torch()
    if len(sys.argv) > 1:
        print_whole(sys.argv[1])
    else:
        serve(prepare, "obp")
