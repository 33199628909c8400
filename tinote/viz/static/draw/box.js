// The box around what is seen in space, with the axes at its edges: what `viz/space/box.py` draws into pictures.

const [TICK_REACH, TEXT_REACH, LABEL_REACH] = [5, 14, 32]; // Pixels from an edge of the box.
const NEARBY = 0.05; // The way outwards leads to a point that is so far away, in radii of the sphere around the box.
const LEAST_WAY = 1e-6;
const BOX_INKS = { light: ["#a6abb3", "#5c6168"], dark: ["#5d6672", "#aab2bd"] };

/**
 * The edge along which an axis is drawn, as a point on it, and the direction away from the box: the `upright` axis at
 * the left, the others at the lower side of what is `seen` of the box.
 */
function edgeOf(number, upright, bounds, right, seen) {
  if (number === upright) return [AXES.map((axis) => bounds[axis][right[axis] > 0 ? 0 : 1]), times(right, -1)];
  const middle = bounds.map(([low, high]) => (low + high) / 2);
  const other = 3 - number - upright;
  const ends = bounds[number].map((end) => seen(AXES.map((axis) => (axis === number ? end : middle[axis]))));
  const along = ends.every(Boolean) ? minus(ends[1], ends[0]) : [NaN, NaN];
  const across = along[0] < 0 ? [along[1], -along[0]] : [-along[1], along[0]];
  let [found, farthest] = [bounds.map(([low]) => low), -Infinity];
  for (const end of bounds[other])
    for (const height of bounds[upright]) {
      const place = AXES.map((axis) => (axis === other ? end : axis === upright ? height : middle[axis]));
      const at = seen(place);
      const away = at && at[0] * across[0] + at[1] * across[1];
      if (away > farthest + LEAST_WAY) [found, farthest] = [place, away];
    }
  return [found, AXES.map((axis) => (axis === other ? Math.sign(found[axis] - middle[axis]) : 0))];
}

/** What is drawn of a box in space, as `seen`: edges and ticks, the grid, and texts with their middles. */
function boxParts({ bounds, axes: shown, grid, edges }, eye, seen) {
  const corner = (number) => bounds.map((pair, axis) => pair[(number >> (2 - axis)) & 1]);
  const parts = { lines: [], grid: [], texts: [] };
  for (let a = 0; edges && a < 8; a += 1)
    for (const digit of [1, 2, 4]) if (!(a & digit)) parts.lines.push([seen(corner(a)), seen(corner(a | digit))]);
  const radius = 0.5 * norm(bounds.map(([low, high]) => high - low));
  const [right, , towards] = axes(eye);
  const heights = eye.up.map(Math.abs);
  const upright = heights.indexOf(Math.max(...heights));
  const far = bounds.map(([low, high], axis) => (towards[axis] > 0 ? low : high));
  const put = (point, number, value) => point.map((part, axis) => (axis === number ? value : part));
  const way = (point, outwards, from) => {
    const to = seen(add(point, times(outwards, NEARBY * radius)));
    return to && norm(minus(to, from)) > LEAST_WAY ? unit(minus(to, from)) : [0, 1];
  };
  shown.forEach(({ ticks, label }, number) => {
    const [edge, outwards] = edgeOf(number, upright, bounds, right, seen);
    const [low, high] = bounds[number];
    for (const { at, text } of ticks) {
      const value = low + at * (high - low);
      if (grid)
        for (const axis of AXES.filter((one) => one !== number))
          parts.grid.push(bounds[axis].map((end) => seen(put(put(far, number, value), axis, end))));
      const place = put(edge, number, value);
      const from = seen(place);
      if (!from) continue;
      const along = way(place, outwards, from);
      parts.lines.push([from, add(from, times(along, TICK_REACH))]);
      parts.texts.push([add(from, times(along, TEXT_REACH + (Math.abs(along[0]) * measured(text)) / 2)), text]);
    }
    const place = put(edge, number, number === upright ? high : (low + high) / 2);
    const from = seen(place);
    if (!from) return;
    const along = way(place, outwards, from);
    const reach = LABEL_REACH + (Math.abs(along[0]) * (widestTick({ ticks }) + measured(label))) / 2;
    parts.texts.push([add(from, number === upright ? [0, -TEXT_REACH] : times(along, reach)), label]);
  });
  return parts;
}

/** Draw a box over what `context`'s canvas shows on that paper; a CSS pixel has `scale` of the canvas. */
function paintBox(context, box, eye, paper, scale) {
  const { width, height } = context.canvas;
  const { lines, grid, texts } = boxParts(box, eye, projector(eye, width / scale, height / scale));
  const [ink, textInk] = BOX_INKS[isDim(partsOf(paper)) ? "dark" : "light"];
  const stroke = (strokes, thick) => {
    context.lineWidth = thick;
    context.beginPath();
    for (const [begin, end] of strokes) {
      if (!begin || !end) continue;
      context.moveTo(...begin);
      context.lineTo(...end);
    }
    context.stroke();
  };
  context.save();
  context.scale(scale, scale);
  context.strokeStyle = ink;
  stroke(grid, 0.4);
  stroke(lines, 0.75);
  [context.fillStyle, context.textAlign, context.textBaseline] = [textInk, "center", "middle"];
  context.font = `11px ${AXES_FONT}`;
  for (const [place, text] of texts) context.fillText(text, ...place);
  context.restore();
}
