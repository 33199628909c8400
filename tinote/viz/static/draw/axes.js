// Charts that Python has placed in parts of the plot (`viz/draw/axes.py`), as SVG.

/**
 * Where parts of a plot lie that is `width` by `height` and has these `edges` around it, and what is drawn of the axes
 * `x` and `y`; `room` is what a tick's text takes.
 */
function placeAxes({ x: across, y: up }, width, height, edges, room = 52) {
  const [left, right, top, bottom] = [edges.left, width - edges.right, edges.top, height - edges.bottom];
  const x = (part) => left + part * (right - left);
  const y = (part) => bottom - part * (bottom - top);
  const tick = (attributes, text) => draw("text", { class: "tick", ...attributes }, text);
  const grid = [];
  for (const { at, text } of up.ticks) {
    grid.push(draw("line", { class: "grid", x1: left, x2: right, y1: y(at), y2: y(at) }));
    grid.push(tick({ x: left - 6, y: y(at) + 4, "text-anchor": "end" }, text));
  }
  const every = Math.max(1, Math.ceil((across.ticks.length * room) / (right - left)));
  for (const { at, text } of across.ticks.filter((_, n) => n % every === 0))
    grid.push(tick({ x: x(at), y: bottom + 16, "text-anchor": at > 0.97 ? "end" : "middle" }, text));
  grid.push(tick({ x: (left + right) / 2, y: height - 5, "text-anchor": "middle" }, across.label));
  return { x, y, left, right, top, bottom, grid };
}

/** Give an SVG the size in which its parts are placed. */
function sizePlot(plot, width, height) {
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height }))
    plot.setAttribute(name, value);
}

/** Have `root` follow the page's theme: `is-dark`, and the colours of series as `--series-0` and on. */
function followTheme(root) {
  const dark = isDark(root);
  root.classList.toggle("is-dark", dark);
  SERIES_COLORS[dark ? "dark" : "light"].forEach((color, n) => root.style.setProperty(`--series-${n}`, color));
}
