"""Claims, tables and figures for the eye: the terminal, a page, a paper."""
