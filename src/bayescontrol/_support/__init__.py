"""Internal: saved state, names, descriptions, display, priors and files."""
