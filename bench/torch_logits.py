"""Measures torch's log_softmax, gather and entropy, forward and backward, when told to on standard input.

Arguments: folder of the tensors, rows, vocabulary. Answers: one line with the versions, then for each `eager` the
nanoseconds on the processor of one pass, and for `stop` a line once the results are written to files.
"""

import os
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402

torch.set_num_threads(1)
folder, rows, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def load(name, dtype, *shape):
    size = 1
    for axis in shape:
        size *= axis
    return torch.from_file(os.path.join(folder, name), size=size, dtype=dtype).clone().reshape(shape)


logits = load("logits", torch.float32, rows, width).requires_grad_()
action = load("action", torch.int32, rows).long().unsqueeze(-1)
print(f"torch {torch.__version__}", file=answers, flush=True)
for line in sys.stdin:
    if line.strip() == "stop":
        break
    logits.grad = None
    start = time.process_time_ns()
    log_probs = torch.log_softmax(logits, dim=-1)
    log_prob = log_probs.gather(-1, action).squeeze(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    (log_prob.sum() + entropy.sum()).backward()
    print(time.process_time_ns() - start, file=answers, flush=True)
    log_prob, entropy = log_prob.detach(), entropy.detach()
    del log_probs
log_prob.numpy().tofile(os.path.join(folder, "log_prob"))
entropy.numpy().tofile(os.path.join(folder, "entropy"))
logits.grad.numpy().tofile(os.path.join(folder, "d_logits"))
print("done", file=answers, flush=True)
