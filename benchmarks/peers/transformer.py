"""A small decoder-only transformer in PyTorch, trained and asked over a pipe.

    {"symbols": [[...]], "targets": [[...]], "tokens": K, "epochs": n, "seed": i}
        train a new network; the answer has the mean loss of each epoch in bits a target,
        the number of weights, and the CPU seconds that it took
    {"symbols": [[...]]}
        the answer has the probabilities of the next token, a row for each history

All rows of a request have the same length. The target of position t is predicted from the symbols
up to t; the loss is the mean of -log P(target), at all positions.

This module runs in the environment of `transformer.txt`, with one thread.
"""

import json
import math
import sys
import time
from typing import Any, Final

import torch  # type: ignore[import-not-found] # in a separate environment
from torch import Tensor, nn
from torch.nn.functional import (  # type: ignore[import-not-found]
    cross_entropy,
    scaled_dot_product_attention,
)

WIDTH: Final = 64
HEADS: Final = 4
LAYERS: Final = 2
BATCH: Final = 128
LEARNING_RATE: Final = 2e-3


class Block(nn.Module):  # type: ignore[misc] # torch has no types here
    """Causal attention and a layer of units, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_units = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.units = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, h: Tensor) -> Tensor:
        """Return the sequence h, shape (rows, positions, WIDTH), after this block."""
        rows, length, _ = h.shape
        split = self.query_key_value(self.before_attention(h))
        split = split.view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(*split, is_causal=True)
        h = h + self.mix(attended.transpose(1, 2).reshape(rows, length, WIDTH))
        return h + self.units(self.before_units(h))


class Transformer(nn.Module):  # type: ignore[misc]
    """Tokens and positions are embedded; blocks; logits of the next token at each position."""

    def __init__(self, tokens: int, length: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.logits = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, tokens))

    def forward(self, symbols: Tensor) -> Tensor:
        """Return the logits, shape (rows, positions, tokens)."""
        positions = torch.arange(symbols.shape[1])
        return self.logits(self.blocks(self.token(symbols) + self.position(positions)))


def train(request: dict[str, Any]) -> tuple[Transformer, dict[str, Any]]:
    """Train a new network; the learning rate falls to zero along a cosine."""
    start = time.process_time()
    torch.manual_seed(request["seed"])
    symbols, targets = (torch.tensor(request[name]) for name in ("symbols", "targets"))
    network = Transformer(request["tokens"], symbols.shape[1])
    steps = request["epochs"] * math.ceil(len(symbols) / BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _ in range(request["epochs"]):
        total = 0.0
        for rows in torch.randperm(len(symbols)).split(BATCH):
            logits = network(symbols[rows]).flatten(0, 1)
            loss = cross_entropy(logits, targets[rows].flatten())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(rows)
        losses.append(total / len(symbols) / math.log(2))
    return network, {
        "bits": losses,
        "weights": sum(p.numel() for p in network.parameters()),
        "cpu_seconds": time.process_time() - start,
    }


def main() -> None:
    """Answer requests until the pipe closes."""
    print("ready", flush=True)
    network: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if "targets" in request:
            network, answer = train(request)
        else:
            with torch.no_grad():
                last = network(torch.tensor(request["symbols"]))[:, -1]
            answer = {"probabilities": last.double().softmax(-1).tolist()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
