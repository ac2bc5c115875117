"""The arguments of a soak."""

import argparse
import random


def arguments(description: str | None, minutes: float) -> argparse.Namespace:
    """Reads ``--minutes`` and ``--seed``, and prints the seed, which repeats the choices of a run.

    Args:
        description: of the soak.
        minutes: the default.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}", flush=True)
    return wanted
