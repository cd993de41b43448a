"""A run as JSON that a person can read and that git can keep: a line for each row and round."""

import json
from typing import Any

DIGITS = 6  # significant; no clock here tells more


def rounded(value: Any) -> Any:
    """The same value with floats of six significant digits, wherever they are in it."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return value


def as_json(document: dict[str, Any]) -> str:
    """The document; each element of a list of objects is a line of its own."""
    members = []
    for name, value in rounded(document).items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in value)
            text = f"[\n{lines}\n ]"
        else:
            text = json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\n ")
        members.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}\n"
