"""Follows a call through the modules of the project: which it enters, in which order, and from where."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from catalog.jvm.python_handler import PythonHandler
from sql_ext.bridge_operations import ScansRecorded

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("otree", "catalog", "procedures", "sql_ext")


@dataclass
class Walk:
    """What a call has passed so far.

    A module counts when one of its functions begins. Lambdas and comprehensions are part of the function around them,
    and what dataclasses generate is no function of a module.

    Attributes:
        last: the function with which the walk ends, as ``module.qualified_name``.
        modules: in the order of first entry.
        entries: by module, the modules that entered it, in that order; '' is the beginning of a thread.
        calls: by function, as ``module.qualified_name``, how often another module called it.
        is_over: whether ``last`` has begun.
    """

    last: str
    modules: list[str] = field(default_factory=list)
    entries: dict[str, list[str]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    is_over: bool = False
    _names: dict[str, str | None] = field(default_factory=dict)

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Takes note of one event of the interpreter; see ``sys.setprofile``."""
        if event != "call" or self.is_over:
            return
        name = frame.f_code.co_name
        module = self._module(frame)
        if module is None or name.startswith("<"):
            return
        caller = self._caller(frame)
        if module not in self.entries:
            self.modules.append(module)
            self.entries[module] = []
        function = f"{module}.{_qualified(frame)}"
        if caller != module:
            self.calls[function] += 1
            if caller not in self.entries[module]:
                self.entries[module].append(caller)
        self.is_over = function == self.last

    def passing(self) -> list[str]:
        """The modules from which the call goes on into another one, in the order of first entry."""
        callers = {caller for callers in self.entries.values() for caller in callers}
        return [module for module in self.modules if module in callers]

    def _caller(self, frame: FrameType) -> str:
        above = frame.f_back
        while above is not None:
            module = self._module(above)
            if module is not None:
                return module
            above = above.f_back
        return ""

    def _module(self, frame: FrameType) -> str | None:
        file = frame.f_code.co_filename
        if file not in self._names:
            path = Path(file)
            inside = path.relative_to(ROOT) if path.is_relative_to(ROOT) else None
            ours = inside is not None and inside.parts[0] in PACKAGES
            parts = inside.with_suffix("").parts if inside is not None and ours else ()
            self._names[file] = ".".join(part for part in parts if part != "__init__") or None
        return self._names[file]


def _qualified(frame: FrameType) -> str:
    """The name of a function after that of its class."""
    for name in ("self", "cls"):
        owner = frame.f_locals.get(name)
        if owner is not None and frame.f_code.co_varnames[:1] == (name,):
            return f"{(owner if name == 'cls' else type(owner)).__name__}.{frame.f_code.co_name}"
    return frame.f_code.co_name


@contextmanager
def walked(last: str) -> Iterator[Walk]:
    """Follows the calls that SQL makes while the block runs, in all threads, until a function begins.

    Args:
        last: see ``Walk``.
    """
    walk = Walk(last)
    handle = PythonHandler.handle

    def followed(self: PythonHandler, operation: str, *arguments: Any) -> Any:
        if operation == ScansRecorded.operation:
            # Records of earlier queries arrive in the background.
            return handle(self, operation, *arguments)
        # The JVM calls on a thread that is there already.
        before = sys.getprofile()
        sys.setprofile(walk.profile)
        try:
            return handle(self, operation, *arguments)
        finally:
            sys.setprofile(before)

    PythonHandler.handle = followed  # type: ignore[method-assign]
    threading.setprofile(walk.profile)
    try:
        yield walk
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
        PythonHandler.handle = handle  # type: ignore[method-assign]
