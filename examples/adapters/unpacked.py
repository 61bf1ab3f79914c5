"""Import single modules of a package from its unpacked wheel, without what the rest of the package needs.

`cargo xtask adapters` unpacks the wheels and names the folder in PLUMBLINE_UNPACKED.
"""

import importlib
import os
import pathlib
import sys
import types


def folder_of(package):
    """Where the package's modules lie."""
    unpacked = os.environ.get("PLUMBLINE_UNPACKED")
    if unpacked is None:
        sys.exit("run this through `cargo xtask adapters`, which unpacks the library")
    root = pathlib.Path(unpacked)
    candidates = [root / package, *root.glob(f"*.data/purelib/{package}")]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    sys.exit(f"{package} is not unpacked in {root}")


def load(package, module, absent=()):
    """Import `package.module`; the packages on the way stay empty, so that only this module's own imports run.

    absent: modules that it imports and does not use for what is called here; they are empty.
    """
    for name in absent:
        sys.modules.setdefault(name, types.ModuleType(name))
    folder = folder_of(package)
    parts = module.split(".")[:-1]
    for depth in range(len(parts) + 1):
        name = ".".join([package, *parts[:depth]])
        if name not in sys.modules:
            empty = types.ModuleType(name)
            empty.__path__ = [str(folder.joinpath(*parts[:depth]))]
            sys.modules[name] = empty
    return importlib.import_module(f"{package}.{module}")
