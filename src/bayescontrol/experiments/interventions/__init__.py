"""Whether an agent may take its own actions for evidence."""
