"""Linear-quadratic control in plant units: three plants, default settings, no scale given.

`python -m benchmarks.plant_units` makes 50 runs of 10,000 steps of each plant, in about five
minutes. It prints the cost of the gain at the end above the optimum, for the gain that the agent
applies and for that of the posterior mean, the steps until the scale was known, refused gains, the
average cost of the whole run, and falls. `--runs`, `--steps` and `--seed` change the defaults.
"""

import argparse

import numpy as np

from bayescontrol_paper.bank import control, plants

__all__ = ["print_results"]


def print_results(runs: int, steps: int, seed: int) -> None:
    """Print a line for each plant: medians, and the largest values in brackets."""
    print(f"{runs} runs of {steps:,} steps, seed {seed}; medians (largest)")
    for name in plants():
        results = [control(name, run, steps, seed) for run in range(runs)]
        columns = np.array(results)
        middle, largest = np.median(columns, axis=0), columns.max(axis=0)
        print(
            f"{name:13} applied gain {middle[0]:.2%} ({largest[0]:.2%}), "
            f"mean gain {middle[1]:.2%} ({largest[1]:.2%}), "
            f"average cost {middle[2]:.3f} ({largest[2]:.3f}) J*, "
            f"search {middle[3]:.0f} ({largest[3]:.0f}) steps, "
            f"refused {middle[4]:.0f} ({largest[4]:.0f}), "
            f"falls {sum(result.fell for result in results)}, largest angle {largest[5]:.3f} rad"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in {"runs": 50, "steps": 10_000, "seed": 0}.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    print_results(**vars(parser.parse_args()))
