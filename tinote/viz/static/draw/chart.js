// The running plot: samples, and a chart of them. The rules for thinning, and the kinds of chart, are
// those of `viz/draw/chart.py`.

const SERIES_COLORS = {
  light: ["#2f6fd0", "#c96012", "#2b8252", "#8450c6", "#b3315f", "#5f6670"],
  dark: ["#79aef7", "#f0a35e", "#63c493", "#bd9bf2", "#f083a8", "#aab2bd"],
};

/** Samples in bounded memory: past `limit` rows every second one goes, and from then on every second one is taken. */
class History {
  constructor(columns, limit = 2000) {
    this.columns = columns;
    this.limit = limit;
    this.clear();
  }
  clear() {
    this.kept = [];
    this.latest = null;
    this.stride = 1;
    this.taken = 0;
  }
  append(row) {
    this.latest = row;
    if (this.taken % this.stride === 0) {
      this.kept.push(row);
      if (this.kept.length > this.limit) {
        this.kept = this.kept.filter((_, index) => index % 2 === 0);
        this.stride *= 2;
      }
    }
    this.taken += 1;
  }
  /** Remove the latest sample: what it measured has changed since. */
  forgetLatest() {
    if (this.latest && this.kept[this.kept.length - 1] === this.latest) this.kept.pop();
    this.taken -= this.latest ? 1 : 0;
    this.latest = this.kept[this.kept.length - 1] ?? null;
  }
  /** Take the rows in `view`, a DataView of float64: instead of all before (`whole`), or after them. */
  receive(view, whole) {
    if (whole) this.clear();
    const width = 8 * this.columns;
    for (let at = 0; at + width <= view.byteLength; at += width) {
      const row = [];
      for (let column = 0; column < this.columns; column += 1) row.push(view.getFloat64(at + 8 * column, true));
      this.append(row);
    }
  }
  rows() {
    return this.latest === null || this.kept[this.kept.length - 1] === this.latest
      ? this.kept
      : [...this.kept, this.latest];
  }
}

/** The kinds of chart: each adds samples of one series that follow each other, in pixels, to the path. */
const CHART_KINDS = {
  line(context, places) {
    if (places.length < 2) return CHART_KINDS.dots(context, places); // A value that stands alone is a dot.
    places.forEach((place, at) => (at ? context.lineTo(...place) : context.moveTo(...place)));
  },
  steps(context, places) {
    const corners = places.slice(1).flatMap((place, at) => [[place[0], places[at][1]], place]);
    CHART_KINDS.line(context, [places[0], ...corners]);
  },
  dots(context, places) {
    for (const place of places) {
      context.moveTo(place[0] + 1.4, place[1]);
      context.arc(...place, 1.4, 0, 2 * Math.PI);
    }
  },
  histogram: (context, places) => CHART_KINDS.steps(context, places), // Of what `countedRows` gives.
};

/** Places that follow each other, in runs: a series has a gap where one is not shown. */
function runsOf(places, isShown) {
  const runs = [];
  let run = null;
  for (const place of places) {
    if (!isShown(place)) run = null;
    else if (run) run.push(place);
    else runs.push((run = [place]));
  }
  return runs;
}

/** A histogram as a chart of steps: how often values lie in bins, whose edges stand in place of the step. */
function countedRows(rows, names, look) {
  const values = rows.map((row) => row.slice(1));
  const x = Scale.fitted(look.x_scale, values.flat(), null);
  const bins = Math.min(Math.max(Math.ceil(Math.sqrt(rows.length)), 5), 40);
  const empty = (at) => [x.at(Math.max(at - 1, 0) / bins), ...names.map(() => 0)];
  const counted = Array.from({ length: bins + 2 }, (_, at) => empty(at));
  for (const row of values)
    for (const [series, value] of row.entries()) {
      const place = x.place(value);
      if (!Number.isFinite(place)) continue;
      counted[1 + Math.min(Math.max(Math.trunc(place * bins), 0), bins - 1)][1 + series] += 1;
    }
  const shown = { label: look.label || "samples", x_label: look.x_label || "value" };
  if (!look.limits && look.scale === "linear")
    shown.limits = [0, 1.06 * Math.max(...counted.map((row) => Math.max(...row.slice(1)))) || 1];
  return { rows: counted, look: { ...look, ...shown, dt: 0 }, x };
}

/** The scales of a chart and what its axes are drawn by, and where it lies on the horizontal axis: `across(row)`. */
function chartAxes(rows, names, look, binned = null) {
  const columns = (atRight) =>
    names.flatMap((name, at) => (name !== look.x && look.right.includes(name) === atRight ? [at + 1] : []));
  const fitted = (form, chosen, limits) =>
    Scale.fitted(form, rows.map((row) => chosen.map((column) => row[column])).flat(), limits);
  const own = look.x ? names.indexOf(look.x) + 1 : 0;
  const across = own ? (row) => row[own] : (row) => row[0] * (look.dt || 1);
  const y = fitted(look.scale, columns(false), look.limits);
  const right = columns(true).length ? fitted(look.right_scale, columns(true), null) : null;
  let x;
  if (binned) x = binned;
  else if (own || look.x_scale !== "linear") x = Scale.fitted(look.x_scale, rows.map(across), null);
  else {
    const [start, stop] = rows.length ? [across(rows[0]), across(rows[rows.length - 1])] : [0, 0];
    x = new Scale("linear", start, stop > start ? stop : start + (look.dt || 1));
  }
  // Steps are whole numbers.
  const about = binned || own || look.dt || x.kind !== "linear" ? 5 : Math.min(5, Math.trunc(x.high - x.low));
  const axes = {
    x: x.axis(look.x_label || look.x || (look.dt ? "time" : "step"), about),
    y: y.axis(look.label, 4),
    right: right?.axis(look.right_label, 4) ?? null,
  };
  return { axes, across, x, scales: names.map((name) => (look.right.includes(name) ? right : y)) };
}

/**
 * Draw `history` on `canvas`, width × height CSS pixels: axes, labels, each series as `look` says, and the sample
 * `marked`, if one is. Colours: `names.length` from the theme. Gives `nearest([across, up])`, the sample at a place.
 */
function drawChart(canvas, { history, names, width, height, look, dark, marked }) {
  const scale = canvas.width / width;
  const context = canvas.getContext("2d");
  const inks = axesInks(canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const binned = look.kind === "histogram" ? countedRows(history.rows(), names, look) : null;
  const rows = binned?.rows ?? history.rows();
  if (binned) [look, marked] = [binned.look, null];
  const { axes, across, x, scales } = chartAxes(rows, names, look, binned?.x);
  const [left, top, bottom] = [sideRoom(axes.y), 8, height - 38];
  const right = width - (axes.right ? sideRoom(axes.right) : 10);
  const placeOf = (row, series) => [
    left + x.place(across(row)) * (right - left),
    bottom - scales[series].place(row[series + 1]) * (bottom - top),
  ];
  const isShown = ([at, up]) => Number.isFinite(at + up) && (!look.limits || (up > top - 2 && up < bottom + 2));
  paintAxes(context, axes, [left, top, right, bottom], inks);
  const drawn = names.flatMap((name, series) => (name === look.x ? [] : [series]));
  const draw = Object.hasOwn(CHART_KINDS, look.kind) ? CHART_KINDS[look.kind] : CHART_KINDS.line;
  const dot = ([at, up]) => {
    context.beginPath();
    context.arc(at, up, 3.5, 0, 2 * Math.PI);
    context.fill();
  };
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  const ends = marked ?? (look.x ? rows[rows.length - 1] : null);
  for (const series of drawn) {
    context.strokeStyle = context.fillStyle = SERIES_COLORS[dark ? "dark" : "light"][series];
    context.beginPath();
    for (const places of runsOf(rows.map((row) => placeOf(row, series)), isShown)) draw(context, places);
    context.stroke();
    const end = ends && placeOf(ends, series);
    if (end && isShown(end)) dot(end);
  }
  if (marked && !look.x) {
    const at = Math.round(placeOf(marked, 0)[0]) + 0.5;
    context.lineWidth = 1;
    context.strokeStyle = inks.muted;
    context.beginPath();
    context.moveTo(at, top);
    context.lineTo(at, bottom);
    context.stroke();
  }
  return (place) => {
    const [at, up] = [place[0] * width, (1 - place[1]) * height];
    let [found, least] = [null, Infinity];
    if (binned || at < left - 5 || at > right + 5) return null;
    for (const row of rows) {
      for (const series of look.x ? drawn : [drawn[0]]) {
        const [across, above] = placeOf(row, series);
        const away = look.x ? Math.hypot(across - at, above - up) : Math.abs(across - at);
        if (away < least) [found, least] = [row, away];
      }
    }
    return found;
  };
}
