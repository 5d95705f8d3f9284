"""Beliefs that serve every problem."""
