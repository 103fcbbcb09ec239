#!/usr/bin/env python3
"""Draws what a program printed as a terminal window: term-svg.py "COMMAND AS SHOWN" <OUTPUT >FILE.svg

Understands what plimsoll writes: bold, three colours, reset. Every piece of text is pinned to its
column, and the lines of trees are drawn as lines, so it looks right whatever font the viewer has.
The same input gives the same bytes: .ci/run compares them with what is in docs/img.
"""
import re
import sys
from xml.sax.saxutils import escape

CELL, LINE, SIZE = 8.4, 19, 14  # width of a column, height of a line, size of the font
PAD, BAR = 16, 34               # around the text; height of the title bar
COLORS = {"": "#d8dee9", "31": "#ff6b6b", "32": "#7ecf7e", "33": "#f0c75e"}
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
# A tree character as strokes from the middle of its cell: up, right, down, left.
STROKES = {"│": "ud", "├": "urd", "└": "ur", "─": "lr"}


def runs(line):
    """(column, text, colour, bold) for each piece of a line."""
    column, color, bold = 0, "", False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not code:
            if piece:
                yield column, piece, color, bold
            column += len(piece)
        elif code[1] in ("", "0"):
            color, bold = "", False
        elif code[1] == "1":
            bold = True
        elif code[1] in COLORS:
            color = code[1]
        else:
            sys.exit(f"term-svg: no idea how to draw the escape sequence {piece!r}")


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def strokes(column, top, character):
    x, y = PAD + (column + 0.5) * CELL, top + LINE / 2
    ends = {"u": (x, top), "d": (x, top + LINE), "l": (x - CELL / 2, y), "r": (x + CELL / 2, y)}
    return "".join(f"M{number(x)} {number(y)}L{number(a)} {number(b)}" for a, b in (ends[e] for e in STROKES[character]))


def draw_line(row, line):
    top = BAR + PAD + row * LINE
    path, out = "", ""
    for column, text, color, bold in runs(line):
        for match in re.finditer(r"[│├└─]|[^\s│├└─]+(?: [^\s│├└─]+)*", text):
            at = column + match.start()
            if match[0] in STROKES:
                path += strokes(at, top, match[0])
                continue
            fill = f' fill="{COLORS[color]}"' if color else ""
            weight = ' font-weight="bold"' if bold else ""
            out += (f'<text x="{number(PAD + at * CELL)}" y="{number(top + LINE * 0.73)}" '
                    f'textLength="{number(len(match[0]) * CELL)}"{fill}{weight}>{escape(match[0])}</text>\n')
    return (f'<path d="{path}"/>\n' if path else "") + out


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: term-svg.py "COMMAND AS SHOWN" <OUTPUT >FILE.svg')
    lines = [f"\x1b[1m$ {sys.argv[1]}\x1b[0m", *sys.stdin.read().rstrip("\n").split("\n")]
    columns = max(80, *(sum(len(text) for _, text, _, _ in runs(line)) for line in lines))
    width, height = round(2 * PAD + columns * CELL), round(BAR + 2 * PAD + len(lines) * LINE)
    title = escape(sys.argv[1], {'"': "&quot;"})
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">')
    print(f"<title>{title}</title>")
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#1e222a"/>')
    print(f'<path d="M0 {BAR}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V{BAR}z" fill="#2b303b"/>')
    for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        print(f'<circle cx="{20 + 20 * i}" cy="{BAR // 2}" r="6" fill="{color}"/>')
    print(f'<g font-family="{FONT}" font-size="{SIZE}" fill="{COLORS[""]}" xml:space="preserve">')
    print('<g fill="none" stroke="#6b7688" stroke-width="1.2">')
    drawn = [draw_line(row, line) for row, line in enumerate(lines)]
    print("".join(part for block in drawn for part in block.splitlines(True) if part.startswith("<path")), end="")
    print("</g>")
    print("".join(part for block in drawn for part in block.splitlines(True) if not part.startswith("<path")), end="")
    print("</g>\n</svg>")


main()
