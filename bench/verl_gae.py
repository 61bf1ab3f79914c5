"""Measures verl's generalised advantage estimation when told to on standard input.

Arguments: folder of the tensors, rows, columns, gamma, lambda. Answers: one line with the versions, then for each `eager`
the nanoseconds on the processor of one pass, and for `stop` a line once the results are written to files.
"""

import os
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402
import verl  # noqa: E402
from verl.trainer.ppo.core_algos import compute_gae_advantage_return  # noqa: E402

torch.set_num_threads(1)
folder, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
gamma, lam = float(sys.argv[4]), float(sys.argv[5])


def load(name):
    values = torch.from_file(os.path.join(folder, name), size=rows * columns, dtype=torch.float32)
    return values.clone().reshape(rows, columns)


reward, value = load("reward"), load("value")
mask = torch.ones(rows, columns)
print(f"verl {verl.__version__}, torch {torch.__version__}", file=answers, flush=True)
for line in sys.stdin:
    if line.strip() == "stop":
        break
    start = time.process_time_ns()
    advantage, returns = compute_gae_advantage_return(reward, value, mask, gamma, lam)
    print(time.process_time_ns() - start, file=answers, flush=True)
advantage.numpy().tofile(os.path.join(folder, "advantage"))
returns.numpy().tofile(os.path.join(folder, "returns"))
print("done", file=answers, flush=True)
