"""Numbers as result keys write them: to six decimals (docs/keys.md, Numbers)."""

from __future__ import annotations

import decimal
import math


def half_away(number: float) -> int:
    """The nearest whole number; of two that are as near, the one further from zero."""
    whole = math.floor(abs(number))
    if abs(number) - whole >= 0.5:
        whole += 1
    return int(math.copysign(whole, number))


def rounded(number: float) -> float:
    """A number to six decimals."""
    return half_away(float(number) * 1_000_000) / 1_000_000


def text(number: float) -> str:
    """A number to six decimals, without trailing zeros and without exponent."""
    millionths = half_away(float(number) * 1_000_000)
    whole, rest = divmod(abs(millionths), 1_000_000)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if millionths < 0 else ''}{whole}{fraction}"


def exact(number: float) -> str:
    """The shortest decimal that reads back as the same double, without exponent."""
    number = float(number)
    digits = format(decimal.Decimal(repr(number)), "f") if number else "0"
    return digits.removesuffix(".0")


def points(number: float) -> float:
    """A length: a number above zero stays above zero."""
    return max(rounded(number), 0.000001)


def whole_pixels(number: float, scale: float, least: int = 1) -> int:
    """A length in points as whole pixels."""
    return half_away(rounded(max(least, half_away(rounded(number))) * scale))
