"""Formulas as browsers draw them by themselves: LaTeX to MathML when a page is written, so reading needs no network.

Conversion is `latex2mathml`; this file adds what it leaves to a typesetter: equation tags, and letters of other
alphabets as characters of their own, because browsers ignore `mathvariant`.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

TAG = re.compile(r"\\tag\{(.*?)\}")
UNKNOWN = {r"\\arg(?![a-zA-Z])": r"\\operatorname{arg}"}  # commands that the converter does not know
UPRIGHT = re.compile(r"\{\\rm\s+([A-Za-z]+)\}")
LETTER = re.compile(r'<m([in]) mathvariant="(script|double-struck|bold)">(&#x[0-9A-F]+;|.)</m\1>')
STAR = "<mo>&#x0002A;</mo>", '<mo lspace="0" rspace="0">&#x2217;</mo>'  # a star is no product
BELOW = re.compile(r"<msub>(<mo>(?:max|min|sup|inf)</mo>)(<mi>[^<]*</mi>|<mrow>(?:(?!</?mrow>).)*</mrow>)</msub>")
FIRST = {
    "script": (0x1D49C, 0x1D4B6, None),
    "double-struck": (0x1D538, 0x1D552, 0x1D7D8),
    "bold": (0x1D400, 0x1D41A, 0x1D7CE),
}
ELSEWHERE = {  # letters that Unicode had before it had these alphabets
    "script": dict(zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ", strict=True)),
    "double-struck": dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True)),
}  # fmt: skip


def mathml(latex: str, *, display: bool = False) -> str:
    """One formula as HTML.

    Parameters
    ----------
    latex : without its dollar signs; a `\\tag{...}` becomes the equation's number.
    display : whether it stands on a line of its own.

    Raises
    ------
    ValueError
        where a command is unknown: nothing is shown that is not mathematics.
    """
    tags = TAG.findall(latex)
    source = UPRIGHT.sub(r"{\\text{\1}}", TAG.sub("", latex))
    for pattern, replacement in UNKNOWN.items():
        source = re.sub(pattern, replacement, source)
    plain = re.sub(r"\\[{}]", "", latex)
    if plain.count("{") != plain.count("}"):
        raise ValueError(f"a formula must close every brace that it opens; {latex!r} does not.")
    try:
        drawn = convert(source.strip(), display="block" if display else "inline")
    except Exception as error:  # the converter has many kinds
        raise ValueError(f"a formula must be LaTeX that can be drawn as MathML; {latex!r}: {error!r}.") from None
    if "\\" in drawn:
        unknown = ", ".join(re.findall(r"\\\w*", drawn))
        raise ValueError(
            f"a formula must be LaTeX that can be drawn as MathML; {latex!r} has {unknown}. Say it otherwise."
        )
    drawn = LETTER.sub(_letter, drawn.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(*STAR))
    if not display:
        return drawn
    drawn = BELOW.sub(r"<munder>\1\2</munder>", drawn)
    number = f'<span class="tag">({html.escape(tags[0])})</span>' if tags else ""
    return f'<div class="equation"><div class="formula">{drawn}</div>{number}</div>'


def _letter(match: re.Match[str]) -> str:
    alphabet, letter = match[2], html.unescape(match[3])
    upper, lower, digit = FIRST[alphabet]
    for first, base in (("A", upper), ("a", lower), ("0", digit)):
        if base and first <= letter <= {"A": "Z", "a": "z", "0": "9"}[first]:
            letter = ELSEWHERE.get(alphabet, {}).get(letter, chr(base + ord(letter) - ord(first)))
            break
    return f"<m{match[1]}>{letter}</m{match[1]}>"
