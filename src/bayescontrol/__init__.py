"""bayescontrol: the Bayesian control rule of Ortega & Braun."""
