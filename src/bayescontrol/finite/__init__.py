"""Finite and parametric classes of modes, with agents and environments for them."""
