"""Settings and random streams that experiments share.

    @dataclass(frozen=True)
    class Settings:
        seed: Seed = 0
        runs: Runs = 100

An experiment whose claims need a minimum number of runs declares it:
`runs: Annotated[int, Meta(ge=FEWEST, description=MINIMUM_RUNS)] = 1000`.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from bayescontrol.seeding import Stream

Seed: TypeAlias = Annotated[int, Meta(ge=0, description="seed of all random numbers")]
Runs: TypeAlias = Annotated[int, Meta(ge=1, description="number of replicas")]

MINIMUM_RUNS: Final = "number of replicas; with fewer, chance could explain every claim"


def named_streams(seed: int, run: int, agent: str, environment: str) -> tuple[Stream, Stream]:
    """Return the streams of an agent and of its environment, which other agents may share."""
    return Stream.named(seed, run, agent), Stream.named(seed, run, environment)
