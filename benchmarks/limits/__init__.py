"""Speed of compiled loops, compared with C programs for the same work."""
