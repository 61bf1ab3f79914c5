"""The `plumbline` program that this package carries."""

import os
import shutil
import sys
import sysconfig


def path():
    """Where the program is: beside this interpreter, else on the PATH; `PLUMBLINE` in the environment stands before both."""
    named = os.environ.get("PLUMBLINE")
    if named:
        return named
    name = "plumbline" + (sysconfig.get_config_var("EXE") or "")
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.isfile(candidate):
            return candidate
    found = shutil.which("plumbline")
    if found is None:
        raise FileNotFoundError(f"the program plumbline is neither in {' nor in '.join(folders)} nor on the PATH")
    return found
