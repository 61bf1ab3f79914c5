"""A right k3 that misbehaves on one case, in the way named on the command line. Speaks the protocol by itself."""

import json
import math
import os
import signal
import sys
import time

MODE = sys.argv[1]
CASE = "chosen-1"


def k3(request):
    columns = [request["inputs"][name]["values"] for name in ("log_prob", "ref_log_prob", "mask")]
    values, gradients = [], []
    for log_prob, reference, kept in zip(*columns):
        d = float(log_prob) - float(reference) if kept else 0.0
        values.append(math.exp(-d) - 1.0 + d)
        gradients.append(1.0 - math.exp(-d))
    shape = request["inputs"]["log_prob"]["shape"]
    return {"kl": {"shape": shape, "values": values}, "d_log_prob": {"shape": shape, "values": gradients}}


def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(message))
    sys.stdout.write("\n")
    sys.stdout.flush()


def misbehave(request):
    seq, outputs = request["seq"], k3(request)
    if MODE == "hang":
        time.sleep(60)
    elif MODE == "long-line":
        chunk = "x" * (1 << 20)
        for _ in range(64):
            sys.stdout.write(chunk)
        say("")
    elif MODE == "deep":
        say(f'{{"seq":{seq},"outputs":{{"kl":' + "[" * 200_000)
    elif MODE == "nan":
        outputs["kl"]["values"][0] = "NaN"
        say({"seq": seq, "outputs": outputs})
    elif MODE == "bare-nan":
        outputs["kl"]["values"][0] = math.nan
        say({"seq": seq, "outputs": outputs})
    elif MODE == "wrong-shape":
        outputs["kl"]["shape"] = list(reversed(outputs["kl"]["shape"]))
        say({"seq": seq, "outputs": outputs})
    elif MODE == "short-values":
        outputs["kl"]["values"].pop()
        say({"seq": seq, "outputs": outputs})
    elif MODE == "closes-pipe":
        os.close(1)
        time.sleep(60)
    elif MODE == "kills-itself":
        os.kill(os.getpid(), signal.SIGKILL)
    elif MODE == "exits":
        print("out of luck", file=sys.stderr)
        os._exit(7)
    elif MODE == "out-of-order":
        say({"seq": seq + 1, "outputs": outputs})
    elif MODE == "twice":
        say({"seq": seq, "outputs": outputs})
        say({"seq": seq, "outputs": outputs})
        time.sleep(0.2)
    elif MODE == "garbage":
        say("Traceback (most recent call last):")
    elif MODE == "no-text":
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.buffer.flush()
    elif MODE == "no-output":
        say({"seq": seq, "outputs": {"d_log_prob": outputs["d_log_prob"]}})
    elif MODE == "raises":
        say({"seq": seq, "error": "ValueError: no"})
    elif MODE == "skips":
        say({"seq": seq, "skip": "not on Mondays"})


for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "start":
        if MODE == "start-garbage":
            say("hello")
        elif MODE == "start-exits":
            sys.exit(3)
        elif MODE == "start-old":
            say({"ok": False, "name": "hostile", "version": "1", "dtype": "f64", "operations": []})
        else:
            takes = ["log_prob", "ref_log_prob", "mask"]
            declared = [{"id": "kl.k3", "takes": takes}]
            say({"ok": True, "name": "hostile", "version": MODE, "dtype": "f64", "operations": declared})
    elif request["cmd"] == "run":
        if request["case"] == CASE or MODE.startswith("always-"):
            MODE = MODE.removeprefix("always-")
            misbehave(request)
        else:
            say({"seq": request["seq"], "outputs": k3(request)})
    else:
        break
