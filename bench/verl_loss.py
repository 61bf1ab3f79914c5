"""Measures verl's PPO loss with a k3 penalty, value and gradient, when told to on standard input.

Arguments: folder of the tensors, rows, columns, KL coefficient. Answers: one line with the versions, then for each
`eager` or `compile` the nanoseconds on the processor of one pass, and for `stop` the last loss, with the gradient written to a file.
"""

import os
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402
import verl  # noqa: E402
from verl.trainer.ppo.core_algos import agg_loss, compute_policy_loss_vanilla, kl_penalty  # noqa: E402
from verl.workers.config import ActorConfig, PolicyLossConfig  # noqa: E402

torch.set_num_threads(1)
folder, rows, columns, kl_coefficient = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


def load(name):
    values = torch.from_file(os.path.join(folder, name), size=rows * columns, dtype=torch.float32)
    return values.clone().reshape(rows, columns)


log_prob = load("log_prob").requires_grad_(True)
old_log_prob, ref_log_prob, advantage = load("old_log_prob"), load("ref_log_prob"), load("advantage")
mask = torch.ones(rows, columns)
config = ActorConfig(
    strategy="fsdp", rollout_n=1, use_dynamic_bsz=True, policy_loss=PolicyLossConfig(), global_batch_info={}
)


def loss(log_prob):
    policy, _ = compute_policy_loss_vanilla(old_log_prob, log_prob, advantage, mask, "token-mean", config)
    penalty = agg_loss(kl_penalty(log_prob, ref_log_prob, "low_var_kl"), mask, "token-mean")
    return policy + kl_coefficient * penalty


def one_pass(function):
    log_prob.grad = None
    # Time on the processor: other work on the machine does not count.
    start = time.process_time_ns()
    value = function(log_prob)
    value.backward()
    return time.process_time_ns() - start, value


# The metrics' .item() would otherwise cut the graph.
torch._dynamo.config.capture_scalar_outputs = True
functions = {"eager": loss, "compile": torch.compile(loss)}
for function in functions.values():
    one_pass(function)
    one_pass(function)
print(f"verl {verl.__version__}, torch {torch.__version__}", file=answers, flush=True)
value = None
for line in sys.stdin:
    what = line.strip()
    if what == "stop":
        break
    nanoseconds, value = one_pass(functions[what])
    print(nanoseconds, file=answers, flush=True)
log_prob.grad.numpy().tofile(os.path.join(folder, "gradient"))
print(repr(float(value.detach())), file=answers, flush=True)
