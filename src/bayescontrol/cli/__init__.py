"""The command line: list, run, report, reproduce, check, serve, verify, demo, warm-up.

    exit code 0    all claims of this library hold (claims of the paper may be refuted)
              1    a claim of this library fails
              2    usage error: unknown experiment, invalid setting, a results folder that cannot be
                   written, is in use or holds other results, a cluster that does not answer
              3    an experiment failed: a replica raised an error, or a worker died
              4    standard output cannot be written: closed pipe or full disk
            130    interrupted by Ctrl-C
              0, 10, 11, 12    of `check`: convergence theorem applies, converges without it,
                               undecided, may never converge

Results go to standard output; progress, warnings and errors to standard error.
"""
