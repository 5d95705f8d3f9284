"""Linear plants and swing-ups with uncertain dynamics."""
