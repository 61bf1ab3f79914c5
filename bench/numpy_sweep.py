"""Measures a vectorised numpy sweep of value iteration when told to on standard input.

Arguments: folder of the arrays, states, actions, successors, discount. Answers: one line with the version, then for each
`sweep` the nanoseconds on the processor of one sweep, and for `stop` a line once its values are written to a file.
"""

import os
import sys
import time

import numpy

folder, states, actions, successors = sys.argv[1], *(int(number) for number in sys.argv[2:5])
discount = float(sys.argv[5])
shape = (states, actions, successors)
probability = numpy.fromfile(os.path.join(folder, "probability")).reshape(shape)
next_state = numpy.fromfile(os.path.join(folder, "next_state"), dtype=numpy.uint32).astype(numpy.int64).reshape(shape)
reward = numpy.fromfile(os.path.join(folder, "reward")).reshape(states, actions)
start_value = numpy.fromfile(os.path.join(folder, "value"))
print(f"numpy {numpy.__version__}", flush=True)
for line in sys.stdin:
    if line.strip() == "stop":
        break
    start = time.process_time_ns()
    value = (reward + discount * (probability * start_value[next_state]).sum(axis=2)).max(axis=1)
    residual = numpy.abs(value - start_value).max()
    print(time.process_time_ns() - start, flush=True)
value.tofile(os.path.join(folder, "swept"))
print(residual, flush=True)
