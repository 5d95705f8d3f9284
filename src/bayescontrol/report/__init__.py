"""Reports: claims and tables on a terminal, figures, and HTML pages."""
