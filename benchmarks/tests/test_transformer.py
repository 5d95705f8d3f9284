"""The audit of a transformer runs, in its quick variant."""

import json

import numpy as np
import pytest
from benchmarks import transformer
from benchmarks.peers.environments import NotInstalled, interpreter

from bayescontrol.audit import WORLDS

QUICK = "--quick", "--json", "--worlds", "prize-or-frog"


def test_the_world_and_its_turns_have_tokens_of_their_own() -> None:
    tokens = transformer.Tokens([WORLDS[name] for name in transformer.CHOSEN])
    rows = [
        tokens.inputs(name, np.array([[a, o]]))
        for name in transformer.CHOSEN
        for a in range(len(WORLDS[name].actions))
        for o in range(len(WORLDS[name].observations))
    ]
    used = np.unique(np.vstack(rows))
    np.testing.assert_array_equal(used, np.arange(tokens.count))


def test_both_networks_are_trained_and_audited(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        interpreter("transformer")
    except NotInstalled as reason:
        pytest.skip(f"PyTorch cannot be installed: {reason}")
    assert transformer.main(QUICK) == 0
    factual, counterfactual = json.loads(capsys.readouterr().out)["results"]
    assert [factual["lessons"], counterfactual["lessons"]] == list(transformer.LESSONS)
    for result in (factual, counterfactual):
        losses = result["training"]["bits"]
        assert losses[-1] < losses[0] < np.log2(4 + 1) + 1
        assert [row["histories"] for row in result["audit"]] == ["written", "forced"]
    # The indices differ by 0.6 or more even after this little training; equal lessons give 0.
    gap = factual["audit"][0]["index"] - counterfactual["audit"][0]["index"]
    assert gap > 0.2
