"""Colors of CSS, as result keys write them (docs/keys.md, Colors)."""

from __future__ import annotations

import math
import re

from ._numbers import half_away

_HEXADECIMAL = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_FUNCTION = re.compile(r"(rgb|hsl)a?\((.*)\)")


def color(text: str) -> str:
    """A CSS color as #rrggbbaa. Raises ValueError if it is invalid."""
    channels = _parsed(text.lower())
    if channels[3] == 0:
        channels = [0, 0, 0, 0]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def hsl(hue: float, saturation: float, lightness: float) -> list[int]:
    """Red, green and blue, 0 to 255."""

    def part(offset: float) -> int:
        k = math.fmod(offset + hue / 30, 12)
        if k < 0:
            k += 12
        amount = saturation * min(lightness, 1 - lightness)
        return _channel((lightness - amount * max(-1, min(k - 3, 9 - k, 1))) * 255)

    return [part(0), part(8), part(4)]


def _parsed(text: str) -> list[int]:
    """Red, green, blue and alpha, 0 to 255."""
    if text == "transparent":
        return [0, 0, 0, 0]
    text = _NAMES.get(text, text)
    if digits := _HEXADECIMAL.fullmatch(text):
        long = digits[1] if len(digits[1]) > 4 else "".join(digit * 2 for digit in digits[1])
        channels = [int(long[place : place + 2], 16) for place in range(0, len(long), 2)]
        return channels if len(channels) == 4 else [*channels, 255]
    function = _FUNCTION.fullmatch(text)
    if not function:
        raise ValueError(f"{text!r} is not a color")
    parts = _split(function[2])
    alpha = _channel(_number(parts[3], 1) * 255) if len(parts) == 4 else 255
    if function[1] == "rgb":
        return [*(_channel(_number(part, 255)) for part in parts[:3]), alpha]
    saturation, lightness = (min(max(_number(part, 1), 0), 1) for part in parts[1:3])
    return [*hsl(float(parts[0].removesuffix("deg")), saturation, lightness), alpha]


def _split(arguments: str) -> list[str]:
    """Three channels and perhaps an opacity."""
    if "," in arguments:
        return [part.strip(" ") for part in arguments.split(",")]
    channels, slash, alpha = arguments.partition("/")
    return channels.split() + ([alpha.strip(" ")] if slash else [])


def _number(text: str, whole: float) -> float:
    return float(text[:-1]) / 100 * whole if text.endswith("%") else float(text)


def _channel(value: float) -> int:
    return min(max(half_away(value), 0), 255)


_NAMES = {
    name: "#" + digits
    for name, _, digits in (
        pair.partition("=")
        for pair in """
aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff aquamarine=7fffd4 azure=f0ffff beige=f5f5dc bisque=ffe4c4 black=000000
blanchedalmond=ffebcd blue=0000ff blueviolet=8a2be2 brown=a52a2a burlywood=deb887 cadetblue=5f9ea0 chartreuse=7fff00 chocolate=d2691e
coral=ff7f50 cornflowerblue=6495ed cornsilk=fff8dc crimson=dc143c cyan=00ffff darkblue=00008b darkcyan=008b8b darkgoldenrod=b8860b
darkgray=a9a9a9 darkgreen=006400 darkgrey=a9a9a9 darkkhaki=bdb76b darkmagenta=8b008b darkolivegreen=556b2f darkorange=ff8c00
darkorchid=9932cc darkred=8b0000 darksalmon=e9967a darkseagreen=8fbc8f darkslateblue=483d8b darkslategray=2f4f4f darkslategrey=2f4f4f
darkturquoise=00ced1 darkviolet=9400d3 deeppink=ff1493 deepskyblue=00bfff dimgray=696969 dimgrey=696969 dodgerblue=1e90ff
firebrick=b22222 floralwhite=fffaf0 forestgreen=228b22 fuchsia=ff00ff gainsboro=dcdcdc ghostwhite=f8f8ff gold=ffd700 goldenrod=daa520
gray=808080 green=008000 greenyellow=adff2f grey=808080 honeydew=f0fff0 hotpink=ff69b4 indianred=cd5c5c indigo=4b0082 ivory=fffff0
khaki=f0e68c lavender=e6e6fa lavenderblush=fff0f5 lawngreen=7cfc00 lemonchiffon=fffacd lightblue=add8e6 lightcoral=f08080
lightcyan=e0ffff lightgoldenrodyellow=fafad2 lightgray=d3d3d3 lightgreen=90ee90 lightgrey=d3d3d3 lightpink=ffb6c1 lightsalmon=ffa07a
lightseagreen=20b2aa lightskyblue=87cefa lightslategray=778899 lightslategrey=778899 lightsteelblue=b0c4de lightyellow=ffffe0
lime=00ff00 limegreen=32cd32 linen=faf0e6 magenta=ff00ff maroon=800000 mediumaquamarine=66cdaa mediumblue=0000cd mediumorchid=ba55d3
mediumpurple=9370db mediumseagreen=3cb371 mediumslateblue=7b68ee mediumspringgreen=00fa9a mediumturquoise=48d1cc mediumvioletred=c71585
midnightblue=191970 mintcream=f5fffa mistyrose=ffe4e1 moccasin=ffe4b5 navajowhite=ffdead navy=000080 oldlace=fdf5e6 olive=808000
olivedrab=6b8e23 orange=ffa500 orangered=ff4500 orchid=da70d6 palegoldenrod=eee8aa palegreen=98fb98 paleturquoise=afeeee
palevioletred=db7093 papayawhip=ffefd5 peachpuff=ffdab9 peru=cd853f pink=ffc0cb plum=dda0dd powderblue=b0e0e6 purple=800080
rebeccapurple=663399 red=ff0000 rosybrown=bc8f8f royalblue=4169e1 saddlebrown=8b4513 salmon=fa8072 sandybrown=f4a460 seagreen=2e8b57
seashell=fff5ee sienna=a0522d silver=c0c0c0 skyblue=87ceeb slateblue=6a5acd slategray=708090 slategrey=708090 snow=fffafa
springgreen=00ff7f steelblue=4682b4 tan=d2b48c teal=008080 thistle=d8bfd8 tomato=ff6347 turquoise=40e0d0 violet=ee82ee wheat=f5deb3
white=ffffff whitesmoke=f5f5f5 yellow=ffff00 yellowgreen=9acd32
""".split()
    )
}
