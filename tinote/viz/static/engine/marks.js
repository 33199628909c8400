// Strokes that views show, as codes: edges, arrows, trails, contours. What `viz/live/strokes.py`, `marks.py`,
// `contours.py` and `grid_marks.py` make of arrays.

const NO_EDGE = -1;
const [ARROW_SPACING, LONGEST_GRID_ARROW, LONGEST_ARROW] = [24, 0.95, 0.12];
const CONTRAST = 0.6;

/** A place, as a fraction of the picture, as a code; `HIDDEN` where codes do not reach. */
function encodedPart(fraction) {
  const code = (fraction + STROKE_MARGIN) * STROKE_UNIT + 0.5;
  return code >= 0.5 && code < HIDDEN ? Math.trunc(code) : HIDDEN;
}

/** Places, two fractions each, as codes: both `HIDDEN` where one is. */
function encoded(places) {
  const codes = new Uint16Array(places.length);
  for (let at = 0; at < places.length; at += 2) {
    const [x, y] = [encodedPart(places[at]), encodedPart(places[at + 1])];
    const isHidden = x === HIDDEN || y === HIDDEN;
    codes[at] = isHidden ? HIDDEN : x;
    codes[at + 1] = isHidden ? HIDDEN : y;
  }
  return codes;
}

/**
 * Strokes between places, two fractions each: their ends where codes reach, four codes each, and which of the strokes
 * these are. By Liang and Barsky.
 */
function asStrokes(begin, end) {
  const ends = [];
  const index = [];
  for (let at = 0; at < begin.length; at += 2) {
    let [first, last] = [0, 1];
    for (let axis = 0; axis < 2; axis += 1) {
      const from = begin[at + axis];
      const along = end[at + axis] - from;
      if (along === 0) {
        if (!(from >= -STROKE_MARGIN && from <= 1 + STROKE_MARGIN)) first = 2;
      } else {
        const [near, far] = [(-STROKE_MARGIN - from) / along, (1 + STROKE_MARGIN - from) / along];
        first = Math.max(first, Math.min(near, far)); // NaN stays NaN.
        last = Math.min(last, Math.max(near, far));
      }
    }
    if (!(first <= last)) continue;
    const found = [first, last].flatMap((part) =>
      [0, 1].map((axis) => begin[at + axis] + part * (end[at + axis] - begin[at + axis])),
    );
    if (!found.every(Number.isFinite)) continue;
    ends.push(...found.map((one) => Math.min(Math.max(one, -STROKE_MARGIN), 1 + STROKE_MARGIN)));
    index.push(at / 2);
  }
  return { ends: encoded(ends), index };
}

/** How points of the plane become places of the picture. */
class PlaneSight {
  constructor(bounds, isSingle) {
    const round = isSingle ? Math.fround : (value) => value;
    this.bounds = bounds;
    this.place = (value, axis) => {
      const [low, high] = bounds[axis].map(round);
      return round(round(value - low) / round(high - low));
    };
    this.extent = Math.min(...bounds.map(([low, high]) => high - low));
    this.key = "plane";
  }
  places({ data, count }) {
    const places = new Float64Array(2 * count);
    for (let at = 0; at < places.length; at += 1) places[at] = this.place(data[at], at & 1);
    return places;
  }
  /** The same of the ends of arrows, which are computed with as f64. */
  tips({ data, count }) {
    const places = new Float64Array(2 * count);
    for (let at = 0; at < places.length; at += 1) {
      const [low, high] = this.bounds[at & 1];
      places[at] = (data[at] - low) / (high - low);
    }
    return places;
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
    if (this.isRenewed) this.codes = this.points.map((row) => encoded(sight.places(row)));
    else
      this.codes = [...this.codes, encoded(sight.places(this.points[this.points.length - 1]))].slice(-this.length - 1);
    [this.step, this.key] = [step, sight.key];
  }
  /** All of it, or the latest row, for a page. */
  part(whole) {
    const rows = whole || this.isRenewed ? this.codes : this.codes.slice(-1);
    const all = new Uint16Array(rows.length * rows[0].length);
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
