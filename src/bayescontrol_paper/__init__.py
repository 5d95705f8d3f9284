"""One module for each figure or claim; each holds an `Experiment` called `experiment`."""
