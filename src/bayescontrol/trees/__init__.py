"""Context trees: a belief over all worlds that depend on a part of the history, and its agent."""

from bayescontrol.trees.alphabet import Alphabet as Alphabet
from bayescontrol.trees.belief import ContextTreeBelief as ContextTreeBelief
from bayescontrol.trees.drawn import DrawnTrees as DrawnTrees
from bayescontrol.trees.problem import ContextTrees as ContextTrees

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
