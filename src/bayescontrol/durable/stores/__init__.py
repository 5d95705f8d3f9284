"""Stores of logs: the interface in `log`, SQLite files, and PostgreSQL servers."""
