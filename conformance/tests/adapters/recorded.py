"""k1 through the adapter module, with every line of the conversation written to the file named on the command line."""

import io
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from plumbline.adapter import Skip, implements, serve

record = open(sys.argv[1], "w", encoding="utf-8")


@implements("kl.k1")
def k1(log_prob, ref_log_prob, mask):
    if len(mask) == 2:
        k1.skips += 1
        if k1.skips == 1:
            raise Skip("a batch of two rows")
    difference = [[(a - b) if k else 0.0 for a, b, k in zip(*rows)] for rows in zip(log_prob, ref_log_prob, mask)]
    return {"kl": difference, "d_log_prob": [list(map(float, row)) for row in mask]}


k1.skips = 0


class Recorder(io.TextIOBase):
    """A text stream that also writes what passes to the record."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, text):
        record.write(text)
        record.flush()
        return self.stream.write(text)

    def flush(self):
        self.stream.flush()

    def __iter__(self):
        for line in self.stream:
            record.write(line)
            record.flush()
            yield line


fdopen = os.fdopen
os.fdopen = lambda *arguments, **options: Recorder(fdopen(*arguments, **options))
sys.stdin = Recorder(sys.stdin)
serve(name="recorded", version="1")
