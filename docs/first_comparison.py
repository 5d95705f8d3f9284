from bayescontrol import BernoulliBandit, compare
from bayescontrol.baselines import UCB1

bandit = BernoulliBandit(10)
agents = {"Thompson sampling": bandit.agent, "UCB1": lambda: UCB1(10)}
result = compare(agents, bandit.draw, steps=1000, runs=100, seed=0)
print(result)
figure = result.plot()
figure.save("comparison.png")
