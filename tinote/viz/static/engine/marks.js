// Strokes that views show: edges, arrows, trails, contours. What `viz/live/strokes.py`, `marks.py`,
// `contours.py` and `grid_marks.py` make of arrays.

const NO_EDGE = -1;
const [ARROW_SPACING, LONGEST_GRID_ARROW, LONGEST_ARROW] = [24, 0.95, 0.12];
const [CONTRAST, STROKE_MARGIN] = [0.6, 0.5];

/**
 * The strokes between places, two fractions each, that may be seen: their ends, four numbers each, and which of the
 * strokes these are.
 */
function asStrokes(begin, end) {
  const ends = [];
  const index = [];
  for (let at = 0; at < begin.length; at += 2) {
    const found = [begin[at], begin[at + 1], end[at], end[at + 1]].map(Math.fround);
    const isNear = [0, 1].every((axis) => {
      const [one, other] = [found[axis], found[axis + 2]];
      return Math.min(one, other) <= 1 + STROKE_MARGIN && Math.max(one, other) >= -STROKE_MARGIN;
    });
    if (!isNear || !found.every(Number.isFinite)) continue;
    ends.push(...found);
    index.push(at / 2);
  }
  return { ends: Float32Array.from(ends), index };
}

/** How points of the plane become places of the picture. */
class PlaneSight {
  constructor(bounds, isSingle) {
    Object.assign(this, { bounds, isSingle, key: "plane" });
    this.extent = Math.min(...bounds.map(([low, high]) => high - low));
  }
  places({ data }, isSingle = this.isSingle) {
    const round = isSingle ? Math.fround : (value) => value;
    const ends = this.bounds.map((pair) => pair.map(round));
    return Float64Array.from(data, (value, at) => {
      const [low, high] = ends[at & 1];
      return round(round(value - low) / round(high - low));
    });
  }
  /** The same of the ends of arrows, which are computed with as f64. */
  tips(points) {
    return this.places(points, false);
  }
  shaded(ink) {
    return ink;
  }
}

/** Positions of the last `length` frames and now, as a page keeps them: see `marks.Trail`. */
class TrailRows {
  constructor(length) {
    this.length = length;
    this.points = [];
    this.step = -1;
    this.key = null;
  }
  add(step, points, sight) {
    if (step < this.step || (this.points.length && this.points[0].count !== points.count)) this.points = [];
    const isSame = this.points.length > 0 && step === this.step;
    if (isSame) this.points.pop();
    this.points.push({ ...points, data: Float32Array.from(points.data) });
    this.points = this.points.slice(-this.length - 1);
    this.isRenewed = isSame || sight.key !== this.key || this.points.length === 1;
    const seen = (row) => Float32Array.from(sight.places(row));
    const latest = this.points[this.points.length - 1];
    this.rows = this.isRenewed ? this.points.map(seen) : [...this.rows, seen(latest)].slice(-this.length - 1);
    [this.step, this.key] = [step, sight.key];
  }
  /** All of it, or the latest row, for a page. */
  part(whole) {
    const rows = whole || this.isRenewed ? this.rows : this.rows.slice(-1);
    const all = new Float32Array(rows.length * rows[0].length);
    rows.forEach((row, at) => all.set(row, at * row.length));
    return { message: { trail: whole || this.isRenewed ? "whole" : "next" }, buffers: [bytesOf(all)] };
  }
}

/** Whether black stands out from a colour better than white does. */
function isLight(red, green, blue) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 110;
}

/** Round numbers between the ends of a scale, as near to `count` of them as there can be. */
function roundLevels(scale, count) {
  const choices = [count, 2 * count, 3 * count].map((about) =>
    scale
      .ticks(about)
      .map(({ value }) => value)
      .filter((tick) => scale.low < tick && tick < scale.high),
  );
  return choices.reduce((best, ticks) =>
    Math.abs(ticks.length - count) < Math.abs(best.length - count) ? ticks : best,
  );
}

/**
 * The contour lines of `values`, `columns` × `rows`, column after column, by marching squares: places, and numbers of
 * levels.
 */
function contourLines(values, columns, rows, levels) {
  const lines = [];
  const numbers = [];
  const add = (level, ...ends) => {
    lines.push(...ends);
    numbers.push(level);
  };
  for (let i = 0; i + 1 < columns; i += 1) {
    for (let j = 0; j + 1 < rows; j += 1) {
      const [a, d] = [values[i * rows + j], values[i * rows + j + 1]];
      const [b, c] = [values[(i + 1) * rows + j], values[(i + 1) * rows + j + 1]];
      const total = a + b + c + d;
      if (!Number.isFinite(total)) continue;
      const [low, high] = [Math.min(a, b, c, d), Math.max(a, b, c, d)];
      levels.forEach((at, level) => {
        if (!(low <= at && at < high)) return;
        // Where the sides are crossed; of a side that is not, any place.
        const [below, right] = [i + (at - a) / (b - a), j + (at - b) / (c - b)];
        const [above, left] = [i + (at - d) / (c - d), j + (at - a) / (d - a)];
        const [onBelow, onRight] = [a > at !== b > at, b > at !== c > at];
        const [onAbove, onLeft] = [d > at !== c > at, a > at !== d > at];
        let begin = [above, j + 1];
        let end = [i, left];
        if (onBelow) begin = [below, j];
        else if (onRight) begin = [i + 1, right];
        if (onBelow && onRight && onAbove) {
          // A saddle: its middle says which corners belong together, and so which sides.
          const joinsRight = total > 4 * at === a > at;
          add(level, above, j + 1, joinsRight ? i : i + 1, joinsRight ? left : right);
          if (joinsRight) end = [i + 1, right];
        } else if (!onLeft) end = onAbove ? [above, j + 1] : [i + 1, right];
        add(level, ...begin, ...end);
      });
    }
  }
  return { lines, numbers };
}

/** Every `step`-th of `count` numbers, those at both ends about as far from the edges as half of that. */
function spacedNumbers(count, step) {
  const first = Math.floor((count - 1 - step * (Math.max(Math.floor(count / step), 1) - 1)) / 2);
  const found = [];
  for (let at = first; at < count - first; at += step) found.push(at);
  return found;
}
