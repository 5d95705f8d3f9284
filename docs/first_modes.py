from bayescontrol import ControlRule, FiniteBelief, interact, plot


class Valve:  # "a turn of the valve changes the temperature error by `gain`"
    def __init__(self, gain):
        self.gain, self.name, self.x = gain, f"gain {gain:+g}", 5.0

    def act(self, x, rng):  # the policy: turn the valve against the error x
        return -0.2 * x / self.gain

    def log_likelihood(self, x, a, o):  # the hypothesis: noise of one degree
        return -0.5 * (o - x - self.gain * a) ** 2

    def respond(self, a, rng):  # the world, if this gain is the true one
        self.x += self.gain * a + rng.normal()
        return self.x


belief = FiniteBelief([Valve(gain) for gain in (-2, -1, 1, 2)])
agent = ControlRule(belief, situation=5.0, advance=lambda x, a, o: o)
record = interact(agent, Valve(-1), steps=60, seed=1, probes=["posterior", "drawn_mode"])
figure = plot.posterior(record)
figure.save("posterior.png")
