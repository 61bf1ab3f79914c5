"""Check a function of the running process: what `assert_conforms` does."""

import functools
import json
import secrets
import socket
import subprocess
import sys
import tempfile

from plumbline.adapter import Implementation, answer
from plumbline.program import path


class Report(dict):
    """What `plumbline check --json` printed; as text, the verdict in words."""

    @property
    def conforms(self):
        """Whether every number is right."""
        return self["conforms"]

    def __str__(self):
        return "\n".join(_words(operation) for operation in self["operations"])


@functools.lru_cache(maxsize=1)
def _operations():
    printed = subprocess.run([path(), "list", "--json"], capture_output=True, text=True, check=True).stdout
    return [operation["id"] for operation in json.loads(printed)["operations"]]


def full_name(operation):
    """The identifier of an operation of which the family may be left out: "grpo" is "objective.grpo"."""
    known = _operations()
    if operation in known:
        return operation
    ends = [name for name in known if name.split(".", 1)[1] == operation]
    objectives = [name for name in ends if name.startswith("objective.")]
    if len(ends) == 1 or len(objectives) == 1:
        return (objectives or ends)[0]
    if ends:
        raise ValueError(f"{operation!r} may be {' or '.join(ends)}; say which")
    raise ValueError(f"no operation is called {operation!r}; `plumbline list` prints all")


def check(function, operation, dialect=None, *, dtype="f64", gradients=True, seed=1, case=None, timeout=10.0, **options):
    """Run `plumbline check` on a function and return its `Report`.

    function: takes the operation's inputs and parameters by name, as `plumbline.adapter.implements` describes.
    operation: "objective.grpo", or "grpo" for short.
    dialect: the library convention that it means to follow, such as "trl-1.16".
    dtype: the precision that it computes in, "f64" or "f32"; the tolerance follows it.
    seed, case: the seed of the random cases, and one case by name (a failure names it).
    options: those of `implements`: settings, inputs_as, mask_as, finite_padding, precision.
    """
    implementation = Implementation(full_name(operation), function, dialect, **options)
    name = getattr(function, "__name__", type(function).__name__)
    start = {
        "name": name,
        "version": "0",
        "dtype": dtype,
        "gradients": gradients,
        "operations": [implementation.declaration()],
    }
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        token = secrets.token_hex(16)
        command = [path(), "check", "--json", "--seed", str(seed), "--timeout", str(timeout)]
        command += [] if case is None else ["--case", case]
        command += ["--", sys.executable, "-m", "plumbline.bridge", str(server.getsockname()[1]), token]
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        server.settimeout(0.1)
        try:
            # Where the function breaks the protocol the program comes again.
            while process.poll() is None:
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(None)
                    _serve(connection, token, start, {implementation.operation: implementation})
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        printed, trouble = out.read(), err.read()
    try:
        return Report(json.loads(printed))
    except ValueError:
        raise RuntimeError(trouble.strip() or f"plumbline ended with exit code {process.returncode}") from None


def _serve(connection, token, start, implementations):
    with connection.makefile("rw", encoding="utf-8", newline="\n") as lines:
        if not secrets.compare_digest(lines.readline().strip(), token):
            return
        try:
            for line in lines:
                message = answer(json.loads(line), start, implementations)
                if message is None:
                    return
                lines.write(message + "\n")
                lines.flush()
        except (BrokenPipeError, ConnectionResetError):
            return


def assert_conforms(function, operation, dialect=None, **options):
    """Fail with the verdict in words unless every number of a function is right. Takes what `check` takes.

        def test_loss():
            assert_conforms(my_loss, "grpo", dialect="trl-1.16")
    """
    __tracebackhide__ = True
    report = check(function, operation, dialect, **options)
    if not report.conforms:
        raise AssertionError(str(report))
    return report


def _words(operation):
    """The verdict on one operation: what is wrong, on which case, and how to see it again."""
    dialect = f" [{operation['dialect']}]" if operation["dialect"] else ""
    lines = [f"{operation['id']}{dialect}: {operation['verdict']} ({operation['cases']} cases compared)"]
    worst = operation["worst"]
    if worst is not None:
        place = f" at {worst['position']}" if worst["position"] else ""
        lines.append(
            f"  farthest off: {worst['output']}{place} of case {worst['case']}: {worst['got']}, right is {worst['expected']}"
        )
    for finding in operation["findings"]:
        lines.append(f"  {finding['text']}")
        if finding["case"]:
            lines.append(f'  this case alone: assert_conforms(..., case="{finding["case"]}")')
    for reason in sorted(set(operation["skipped"])):
        lines.append(f"  left out: {reason}")
    return "\n".join(lines)
