"""The names under which Gymnasium finds our worlds.

bayescontrol/Bandit-v0, Maze-v0, Chain-v0 and LinearPlant-v0: worlds that pass its `check_env`.
"""

from bayescontrol.gym.door import gymnasium

#: id → where its class is
WORLDS = {
    "bayescontrol/Bandit-v0": "bayescontrol.gym.worlds:BanditEnv",
    "bayescontrol/Maze-v0": "bayescontrol.gym.worlds:MazeEnv",
    "bayescontrol/Chain-v0": "bayescontrol.gym.worlds:ChainEnv",
    "bayescontrol/LinearPlant-v0": "bayescontrol.gym.worlds:LinearPlantEnv",
}


def register() -> None:
    """Tell Gymnasium of them; `import bayescontrol.gym` does so.

    >>> register()
    >>> gymnasium.make("bayescontrol/Maze-v0").observation_space
    Discrete(49)
    """
    for name, home in WORLDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=home)
