"""Let `plumbline check` call your loss function.

Import, decorate, serve::

    import torch
    from plumbline.adapter import implements, serve

    @implements("objective.grpo", dialect="trl-1.16")
    def grpo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
        ...
        return loss                      # a torch scalar: the gradient comes from autograd

    serve(name="my trainer", version="1.2")

and run ``plumbline check -- python my_adapter.py``.

The function's argument names are the operation's input and parameter names (``plumbline explain objective.grpo``
prints them). What the signature does not name is not sent, and parameters that it does not name stay at the dialect's
value. With ``**others`` the function receives everything.

Inputs arrive as torch tensors when torch has been imported by the time `serve` is called, else as nested lists; say
``inputs_as="torch" | "numpy" | "list"`` to choose. A function without autograd returns its gradients itself:
``{"loss": 0.5, "d_log_prob": [[...]]}``. To leave a case out, raise `Skip` with the reason.

Needs the standard library only. The protocol is described in docs/src/protocol.md.
"""

import inspect
import json
import math
import os
import sys
import traceback

PROTOCOL_VERSION = 1

_registered = []


class Skip(Exception):
    """Raise this to leave a case out; the text is the reason that the report shows."""


def implements(operation, dialect=None, settings=None, inputs_as=None, mask_as="number", finite_padding=False, precision=None):
    """Register the decorated function as an implementation of `operation`.

    dialect: the library convention that it means to follow (a dialect of the operation).
    settings: parameters that the function fixes, where they differ from the dialect's, by name.
    inputs_as: "torch", "numpy" or "list"; by default torch when it has been imported.
    mask_as: "number" (1.0 and 0.0 in the dtype of the other inputs) or "bool".
    finite_padding: True where the function may rely on finite numbers under the mask, so that NaN and infinities are
        not put there (the report says so).
    precision: "f32" where the function computes in single precision inside although it takes and gives doubles.
    """

    def register(function):
        _registered.append(
            Implementation(operation, function, dialect, settings, inputs_as, mask_as, finite_padding, precision)
        )
        return function

    return register


class Implementation:
    """A user's function and what it declared; `implements` describes the arguments."""

    def __init__(
        self,
        operation,
        function,
        dialect=None,
        settings=None,
        inputs_as=None,
        mask_as="number",
        finite_padding=False,
        precision=None,
    ):
        if inputs_as not in (None, "torch", "numpy", "list"):
            raise ValueError(f'inputs_as is "torch", "numpy" or "list", not {inputs_as!r}')
        if mask_as not in ("number", "bool"):
            raise ValueError(f'mask_as is "number" or "bool", not {mask_as!r}')
        if precision not in (None, "f64", "f32"):
            raise ValueError(f'precision is "f64" or "f32", not {precision!r}')
        self.operation = operation
        self.function = function
        self.dialect = dialect
        self.settings = settings or {}
        self.inputs_as = inputs_as
        self.mask_as = mask_as
        self.finite_padding = finite_padding
        self.precision = precision
        parameters = inspect.signature(function).parameters.values()
        nameless = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
        unnamed = [str(parameter) for parameter in parameters if parameter.kind in nameless]
        if unnamed:
            raise ValueError(f"arguments go by name: {', '.join(unnamed)} cannot be given")
        self.takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self.takes = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]

    def declaration(self):
        declared = {"id": self.operation}
        if self.dialect is not None:
            declared["dialect"] = self.dialect
        if self.settings:
            declared["settings"] = self.settings
        if self.finite_padding:
            declared["finite_padding"] = True
        if self.precision is not None:
            declared["precision"] = self.precision
        if not self.takes_all:
            declared["takes"] = self.takes
        return declared


def serve(name, version="0", dtype="f64", gradients=True):
    """Answer `plumbline check` on standard input and output until it says stop.

    What your code prints goes to standard error, so that it cannot break the protocol.
    """
    if dtype not in ("f64", "f32"):
        raise ValueError(f'dtype is "f64" or "f32", not {dtype!r}')
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    implementations = {}
    for implementation in _registered:
        if implementation.operation in implementations:
            raise ValueError(f"{implementation.operation} is implemented twice")
        implementations[implementation.operation] = implementation

    start = {
        "name": name,
        "version": version,
        "dtype": dtype,
        "gradients": gradients,
        "operations": [implementation.declaration() for implementation in implementations.values()],
    }
    for line in sys.stdin:
        message = answer(json.loads(line), start, implementations)
        if message is None:
            return
        answers.write(message + "\n")
        answers.flush()


def answer(request, start, implementations):
    """The line that answers a request of the protocol; None to the end of the conversation."""
    command = request.get("cmd")
    if command == "start":
        message = {"ok": request.get("version") == PROTOCOL_VERSION, **start}
    elif command == "run":
        message = _run(implementations.get(request["operation"]), request)
    else:
        return None
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


def _run(implementation, request):
    seq = request["seq"]
    if implementation is None:
        return {"seq": seq, "skip": f"{request['operation']} is not implemented here"}
    try:
        return {"seq": seq, "outputs": _call(implementation, request)}
    except Skip as reason:
        return {"seq": seq, "skip": str(reason) or "no reason given"}
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return {"seq": seq, "error": f"{type(error).__name__}: {error}"}


def _call(implementation, request):
    arrays = _arrays(implementation, request["dtype"])
    want = request["want"]
    gradients = {output[2:]: output for output in want if output.startswith("d_")}
    arguments = {}
    for name, tensor in request["inputs"].items():
        arguments[name] = arrays.read(tensor, trainable=name in gradients)
    arguments.update(request["params"])
    if not implementation.takes_all:
        arguments = {name: value for name, value in arguments.items() if name in implementation.takes}
    result = implementation.function(**arguments)
    if not isinstance(result, dict):
        result = {want[0]: result}
    outputs = {name: arrays.write(value) for name, value in result.items()}
    for name, output in gradients.items():
        if output not in outputs and name in arguments and want[0] in result:
            gradient = arrays.gradient(result[want[0]], arguments[name])
            if gradient is not None:
                outputs[output] = arrays.write(gradient)
    return outputs


def _arrays(implementation, dtype):
    kind = implementation.inputs_as or ("torch" if "torch" in sys.modules else "list")
    return {"torch": _Torch, "numpy": _Numpy, "list": _Lists}[kind](dtype, implementation.mask_as)


def _number(value):
    """A JSON number, or NaN and the infinities by name."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _nested(values, shape):
    if not shape:
        return values[0]
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0] if shape[0] else 0
    return [_nested(values[row * step : (row + 1) * step], shape[1:]) for row in range(shape[0])]


def _flat(value):
    """Numbers and shape of nested sequences."""
    if not isinstance(value, (list, tuple)):
        return [value], []
    rows = [_flat(row) for row in value]
    shapes = {tuple(shape) for _, shape in rows}
    if len(shapes) > 1:
        raise ValueError("the rows of a returned list have different lengths")
    inner = list(shapes.pop()) if shapes else []
    return [number for numbers, _ in rows for number in numbers], [len(value)] + inner


class _Lists:
    """Inputs as nested lists; the function returns its gradients itself."""

    def __init__(self, dtype, mask_as):
        self.mask_as = mask_as

    def read(self, tensor, trainable):
        values = tensor["values"]
        if tensor["kind"] == "real":
            values = [float(value) for value in values]
        elif tensor["kind"] == "mask" and self.mask_as == "bool":
            values = [bool(value) for value in values]
        return _nested(values, tensor["shape"])

    def write(self, value):
        values, shape = _flat(value)
        return {"shape": shape, "values": [_number(value) for value in values]}

    def gradient(self, result, argument):
        return None


class _Numpy(_Lists):
    """Inputs as numpy arrays; the function returns its gradients itself."""

    def __init__(self, dtype, mask_as):
        import numpy

        self.numpy = numpy
        self.mask_as = mask_as
        self.dtype = {"f64": numpy.float64, "f32": numpy.float32}[dtype]

    def read(self, tensor, trainable):
        numpy = self.numpy
        values = [float(value) for value in tensor["values"]]
        dtype = self.dtype
        if tensor["kind"] == "index":
            dtype = numpy.int64
        elif tensor["kind"] == "mask" and self.mask_as == "bool":
            dtype = numpy.bool_
        return numpy.array(values, dtype=numpy.float64).astype(dtype).reshape(tensor["shape"])

    def write(self, value):
        array = self.numpy.asarray(value, dtype=self.numpy.float64)
        return {"shape": list(array.shape), "values": [_number(number) for number in array.reshape(-1)]}


class _Torch:
    """Inputs as torch tensors, trainable ones with requires_grad; the gradient by autograd."""

    def __init__(self, dtype, mask_as):
        import torch

        self.torch = torch
        self.mask_as = mask_as
        self.dtype = {"f64": torch.float64, "f32": torch.float32}[dtype]

    def read(self, tensor, trainable):
        torch = self.torch
        values = [float(value) for value in tensor["values"]]
        dtype = self.dtype
        if tensor["kind"] == "index":
            dtype = torch.int64
        elif tensor["kind"] == "mask" and self.mask_as == "bool":
            dtype = torch.bool
        array = torch.tensor(values, dtype=torch.float64).to(dtype).reshape(tensor["shape"])
        return array.requires_grad_(True) if trainable else array

    def write(self, value):
        if not self.torch.is_tensor(value):
            # Python's numbers are double precision; torch by itself would round them to single.
            value = self.torch.as_tensor(value, dtype=self.torch.float64)
        array = value.detach().to("cpu", self.torch.float64)
        return {"shape": list(array.shape), "values": [_number(number) for number in array.reshape(-1).tolist()]}

    def gradient(self, result, argument):
        if not getattr(result, "requires_grad", False):
            return self.torch.zeros_like(argument)
        (gradient,) = self.torch.autograd.grad(result.sum(), argument, retain_graph=True, allow_unused=True)
        return self.torch.zeros_like(argument) if gradient is None else gradient
