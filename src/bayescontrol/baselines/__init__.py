"""What the control rule is measured against, with the same face."""
