"""Problems: a class of modes and the environments it is made for, together."""
