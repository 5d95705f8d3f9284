"""Claims say what they must, and their verdict follows."""

import numpy as np
import pytest

from bayescontrol.lab.claims import Claim, InvalidClaim, all_ours_hold, tally


def claim(**changes: object) -> Claim:
    fields: dict[str, object] = {
        "name": "time",
        "claim": "it takes k steps",
        "source": "ours",
        "expected": 3.0,
        "ours": 3.1,
        "error": 0.1,
        "holds": True,
    }
    if changes.get("source") == "paper":
        fields["place"] = "section 6.1"
    return Claim(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_refuted_claim_of_the_paper_needs_a_reason() -> None:
    with pytest.raises(InvalidClaim, match=r"'time' of the paper .* gives no reason"):
        claim(source="paper", holds=False)
    assert claim(source="paper", holds=False, reason="misprint").verdict == "refuted"


def test_a_claim_of_ours_that_does_not_hold_fails_and_a_refuted_one_does_not() -> None:
    refuted = claim(source="paper", holds=False, reason="misprint")
    assert all_ours_hold([claim(), refuted])
    assert not all_ours_hold([claim(), claim(holds=False)])


def test_numpy_scalars_become_plain_numbers() -> None:
    made = claim(expected=np.float64(3), ours=np.int64(4), error=np.float64(0), holds=np.True_)
    assert [type(x) for x in (made.expected, made.ours, made.error, made.holds)] == [
        float,
        int,
        float,
        bool,
    ]


@pytest.mark.parametrize("changes", [{"source": "theirs"}, {"error": -0.1}])
def test_a_claim_that_cannot_be_meant_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidClaim, match="claim 'time'"):
        claim(**changes)


def test_a_claim_of_the_paper_without_its_place_is_refused() -> None:
    with pytest.raises(InvalidClaim, match="'time' of the paper does not say where"):
        claim(source="paper", place=" ")
    assert claim(source="paper").place == "section 6.1"


def test_not_comparable_is_neither_held_nor_refuted_and_does_not_fail() -> None:
    lost = claim(source="paper", holds=None, reason="the map is lost")
    assert lost.verdict == "not comparable"
    assert lost.holds is None
    assert all_ours_hold([claim(), lost])
    assert tally([lost]) == {"by simulation": {"not comparable": 1}, "exact": {}}


def test_a_claim_of_ours_cannot_avoid_a_verdict_and_not_comparable_needs_a_reason() -> None:
    with pytest.raises(InvalidClaim, match="'time' of ours must hold or fail"):
        claim(holds=None, reason="too hard")
    with pytest.raises(InvalidClaim, match=r"'time' of the paper .* gives no reason"):
        claim(source="paper", holds=None)


def test_exact_claims_are_counted_apart() -> None:
    claims = [
        claim(),
        claim(exact=True),
        claim(exact=True),
        claim(holds=False),
        claim(source="paper", exact=True, holds=False, reason="misprint"),
    ]
    assert tally(claims) == {
        "by simulation": {"holds": 1, "fails": 1},
        "exact": {"holds": 2, "refuted": 1},
    }
