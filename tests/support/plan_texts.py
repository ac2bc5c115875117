"""Texts of stored plans whose digests match, as an attacker would write them who knows the format."""

import hashlib
import json


def _digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def signed(plan, *parts):
    """The text of a plan's file for the texts of its parts."""
    plan = {**plan, "part_digests": [_digest(part) for part in parts]}
    return json.dumps({**plan, "digest": _digest(json.dumps(plan, separators=(",", ":")))})


def signed_again(text, *parts):
    """The same for the text of a plan's file; unchanged where it is no JSON object."""
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return signed({k: v for k, v in plan.items() if k != "digest"}, *parts) if isinstance(plan, dict) else text
