"""Charts as SVG, readable on light and on dark pages: the colours follow the reader's scheme."""
import html, math

# Distinct in both schemes and for colour-blind eyes (after Okabe and Ito).
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c2b", "#7f7f7f", "#a65628", "#6a51a3"]
STYLE = """
    text { font: 12px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 14px }
    .small { font-size: 10px; fill: #59636e }
    .grid { stroke: #d1d9e0; stroke-width: 1 }
    .one { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 4 3 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .small { fill: #9198a1 }
      .grid { stroke: #3d444d }
      .one { stroke: #f0f6fc }
    }
"""
WIDTH = 860
LEFT, RIGHT = 130, 60
BAR, GAP = 11, 12
# A bar that is longer is cut, and its number says so.
RATIO_MAX = 1.5


def text(x, y, content, style="", anchor="start"):
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{html.escape(content)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def picture(height, title, parts):
    body = "\n  ".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
            f'role="img" aria-label="{html.escape(title)}">\n  <style>{STYLE}  </style>\n  {body}\n</svg>\n')


def legend(labels, y):
    """Labels with their colours, and where what follows begins."""
    parts, x = [], LEFT
    for index, label in enumerate(labels):
        if x > LEFT and x + 14 + 7 * len(label) > WIDTH:
            x, y = LEFT, y + 18
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" rx="2" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(text(x + 14, y, label))
        x += 34 + 7 * len(label)
    return parts, y


def ratios(title, document):
    """Horizontal bars: how fast each subject is compared with the reference, whose speed is the dashed line."""
    labels = [subject["label"] for subject in document["subjects"] if subject["label"] != document["reference"]]
    scale = (WIDTH - LEFT - RIGHT) / RATIO_MAX
    marks, y = legend(labels, 42)
    parts = [text(LEFT, 20, title, "title"), *marks,
             text(LEFT, y + 18, f"speed compared with {document['reference']}; longer is faster", "small")]
    y = top = y + 42
    bars = []
    for row in document["rows"]:
        group = BAR * max(len(labels), 1)
        bars.append(text(LEFT - 8, y + group / 2 + 4, row["row"], anchor="end"))
        for index, label in enumerate(labels):
            bars += bar(row["subjects"].get(label, {}), y + index * BAR, scale, COLOURS[index % len(COLOURS)])
        y += group + GAP
    for step in range(int(RATIO_MAX / 0.25) + 1):
        x = LEFT + step * 0.25 * scale
        parts.append(line(x, top - 6, x, y - GAP + 4, "one" if step == 4 else "grid"))
        parts.append(text(x, top - 10, f"{step * 0.25:.2f}", "small", "middle"))
    return picture(y, title, parts + bars)


def bar(entry, y, scale, colour):
    if "ratio" not in entry:
        return [text(LEFT + 4, y + BAR - 1, "fails", "small")] if "failure" in entry else []
    ratio = entry["ratio"]
    length = max(1.0, min(ratio, RATIO_MAX) * scale)
    said = (f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}") + (" →" if ratio > RATIO_MAX else "")
    return [f'<rect x="{LEFT}" y="{y:.1f}" width="{length:.1f}" height="{BAR - 1}" rx="1.5" fill="{colour}"/>',
            text(LEFT + length + 4, y + BAR - 1, said, "small")]


def curves(title, series, x_title, y_title):
    """Lines on two logarithmic axes. `series`: label → [(x, y)], all above zero."""
    points = [point for line_points in series.values() for point in line_points]
    if not points:
        return picture(60, title, [text(LEFT, 20, title, "title")])
    low_x, high_x = decades([x for x, _ in points])
    low_y, high_y = decades([y for _, y in points])
    marks, top = legend(list(series), 42)
    top, height = top + 42, 360
    place_x = lambda x: LEFT + (math.log10(x) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)
    place_y = lambda y: top + height - (math.log10(y) - low_y) / (high_y - low_y) * height
    parts = [text(LEFT, 20, title, "title"), *marks, text(LEFT - 8, top - 16, y_title, "small", "end"),
             text(WIDTH - RIGHT, top + height + 34, x_title, "small", "end")]
    for power in range(low_x, high_x + 1):
        parts.append(line(place_x(10**power), top, place_x(10**power), top + height, "grid"))
        parts.append(text(place_x(10**power), top + height + 16, f"{10**power:,}", "small", "middle"))
    for power in range(low_y, high_y + 1):
        parts.append(line(LEFT, place_y(10**power), WIDTH - RIGHT, place_y(10**power), "grid"))
        parts.append(text(LEFT - 8, place_y(10**power) + 4, f"{10**power:,}" if power >= 0 else f"{10**power:g}", "small", "end"))
    for index, line_points in enumerate(series.values()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in line_points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in line_points]
    return picture(top + height + 44, title, parts)


def decades(values):
    """The powers of ten around the values, at least one apart."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)
