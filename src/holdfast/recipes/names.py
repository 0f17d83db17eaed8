"""Names made from a template: `orders/{id}` with `id=7` is the name `orders/7`, of the family `orders/{id}`.

1. A field is `{word}`. Each is given exactly once, and each that is given is in the template: a field that is missing
   would let all lock the same name, and one too many is a misspelt option.
2. A value is a whole number or a text that is not empty, and is one segment: it has no `/`, so that no value can be
   made to name something in another family.
"""

from __future__ import annotations

import re
from typing import cast

from ..errors import Misconfigured
from ..model import check_name
from .options import Options

KNOWN = frozenset(Options.__annotations__)
_FIELD = r"\{([^{}]*)\}"  # compiled on first use: `import holdfast` stays light


class Name(str):
    """A name made from a template, which is its family: what it is counted under in metrics.

    >>> name = Name("orders/{id}", id=7)
    >>> name, name.family
    ('orders/7', 'orders/{id}')
    """

    __slots__ = ("family",)
    family: str

    def __new__(cls, template: str, /, **fields: str | int) -> Name:
        check_name(template, "template")
        wanted = re.findall(_FIELD, template)
        rest = re.sub(_FIELD, "", template)
        if not wanted or "{" in rest or "}" in rest or not all(word.isidentifier() for word in wanted):
            raise Misconfigured(f"the template {template!r} has no fields, or odd ones; write them as {{word}}")
        if missing := set(wanted) - set(fields):
            raise Misconfigured(f"the template {template!r} has the field {min(missing)!r}, which was not given")
        if odd := set(fields) - set(wanted):
            raise Misconfigured(f"{min(odd)!r} is neither an option nor a field of the template {template!r}")
        segments = {word: _segment(template, word, fields[word]) for word in wanted}
        name = super().__new__(cls, check_name(re.sub(_FIELD, lambda field: segments[field[1]], template)))
        name.family = template
        return name

    def __reduce__(self) -> tuple[object, ...]:
        return (in_family, (str(self), self.family))


def in_family(text: str, family: str) -> Name:
    """A name of this family, which needs no template: whoever calls this has made both."""
    name = str.__new__(Name, text)
    name.family = family
    return name


def _segment(template: str, word: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Misconfigured(
            f"the field {word!r} of {template!r} is a str or an int, not {type(value).__name__}: give str({word}) "
            "if that is what you mean"
        )
    text = str(value)
    if not text or "/" in text:
        raise Misconfigured(f"the field {word!r} of {template!r} is one segment of a name, and {text[:80]!r} is not")
    return text


def with_fields(name: str, options: Options) -> tuple[str, Options]:
    """The name, made with the fields that are among the options; and the options alone."""
    if not options or KNOWN.issuperset(options) or not isinstance(name, str) or "{" not in name:
        return name, options
    given = cast("dict[str, str | int]", options)
    fields = {word: value for word, value in given.items() if word not in KNOWN}
    return Name(name, **fields), cast(Options, {word: given[word] for word in given if word in KNOWN})


def family_of_name(name: str) -> str:
    """The template of a name; "" for a plain one."""
    return name.family if isinstance(name, Name) else ""
