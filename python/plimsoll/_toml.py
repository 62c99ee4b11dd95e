"""Writes dicts as TOML, in which scenarios are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value(of: object) -> str:
    """Return a value in the form of TOML, on one line."""
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, (int, float)):
        # Numbers of numpy are floats by another name.
        return repr(float(of)) if isinstance(of, float) else repr(int(of))
    if isinstance(of, str):
        # TOML has the escapes of JSON.
        return json.dumps(of, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(of, Mapping):
        items: Mapping[Any, Any] = of
        return "{ " + ", ".join(f"{key(name)} = {value(item)}" for name, item in items.items()) + " }"
    if isinstance(of, Sequence):
        elements: Sequence[Any] = of
        return "[" + ", ".join(value(item) for item in elements) + "]"
    as_list = getattr(of, "tolist", None)
    if callable(as_list):
        return value(as_list())
    raise TypeError(f"{of!r} has no form in TOML; allowed: bool, int, float, str, lists and dicts of these")


def key(name: object) -> str:
    """Return a key in the form of TOML."""
    text = str(name)
    return text if _BARE.fullmatch(text) else value(text)


def document(tables: Mapping[str, Any]) -> str:
    """Return a document, with a line for each value so that an error can name it."""
    lines: list[str] = []
    _table(tables, [], lines)
    return "\n".join(lines) + "\n"


def _table(table: Mapping[str, Any], path: list[str], lines: list[str]) -> None:
    inner = {name: item for name, item in table.items() if isinstance(item, Mapping) and item}
    own = [(name, item) for name, item in table.items() if name not in inner]
    if path and (own or not inner):
        lines += ["", "[" + ".".join(map(key, path)) + "]"]
    lines += [f"{key(name)} = {value(item)}" for name, item in own]
    for name, item in inner.items():
        _table(item, [*path, name], lines)


def settings(of: Mapping[str, Any] | None) -> list[str]:
    """Return overrides as the option ``--set`` takes them."""
    return [f"{name}={value(item)}" for name, item in (of or {}).items()]
