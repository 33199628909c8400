// The running plot: samples, and a chart of them. The rules for ticks and for thinning, and the kinds of chart, are
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

function niceTicks(low, high, about) {
  const span = high - low;
  if (!(Number.isFinite(span) && span > 0)) return Number.isFinite(low) ? [low] : [];
  const raw = span / Math.max(about, 1);
  const power = raw ? 10 ** Math.floor(Math.log10(raw)) : 0;
  if (!power) return [low]; // Closer together than numbers can tell.
  const factors = [0.2, 0.5, 1, 2, 5, 10];
  let step, first, last;
  // A step that is just too large for three leaves one or two; the next smaller one, or the one after, has three.
  for (let at = factors.findIndex((factor) => power * factor >= raw * (1 - 1e-9)); at >= 0; at -= 1) {
    step = power * factors[at];
    [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
    if (last - first + 1 >= Math.min(about, 3)) break;
  }
  // Counted from the first: beyond 2 ** 53 the number after another one is the same.
  return Array.from({ length: Math.max(0, last - first + 1) || 0 }, (_, at) => (first + at) * step);
}

function tickText(value, step) {
  if (Math.abs(value) < step * 1e-6) return "0";
  const digits = -Math.floor(Math.log10(step) + 1e-9);
  if (Math.abs(value) < 1e6 && step >= 1e-4) return signed(value.toFixed(Math.max(0, digits)));
  const decimals = digits + Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  return timesPower(value.toExponential(Math.min(Math.max(0, decimals), 15)));
}

/** A number as `toExponential` writes it with a power of ten, such as 1.5×10⁹, 10⁻⁶ or −10⁹. */
function timesPower(text) {
  let [mantissa, exponent] = text.split("e");
  if (mantissa.includes(".")) mantissa = mantissa.replace(/\.?0+$/, "");
  const raised = (digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)];
  const power = `10${[...String(Number(exponent))].map(raised).join("")}`;
  return signed(/^-?1$/.test(mantissa) ? mantissa.slice(0, -1) + power : `${mantissa}×${power}`);
}

/** A number as text, with a true minus sign. */
const signed = (text) => text.replace("-", "−");

/** A number next to a chart, with four digits. */
function numberText(value) {
  if (!Number.isFinite(value)) return signed(String(value));
  const size = Math.abs(value);
  if (size && (size >= 1e6 || size < 1e-4)) return timesPower(value.toExponential(3));
  return signed(String(Number(value.toPrecision(4))));
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
};

/** The parts of `rows` whose values in a column are finite, as places: a series has a gap where one is not. */
function finiteRuns(rows, column, place) {
  const runs = [];
  let run = null;
  for (const row of rows) {
    if (!Number.isFinite(row[column])) run = null;
    else if (run) run.push(place(row));
    else runs.push((run = [place(row)]));
  }
  return runs;
}

/**
 * Draw `history` on `canvas`, width × height CSS pixels: axes, labels, each series as its `kind` is drawn, and the
 * sample `marked`, if one is. Colours: `names.length` from the theme.
 */
function drawChart(canvas, { history, names, width, height, xLabel, yLabel, kind, dark, marked }) {
  const scale = canvas.width / width;
  const context = canvas.getContext("2d");
  const styles = getComputedStyle(canvas);
  const ink = styles.getPropertyValue("--tinote-ink") || "#333";
  const grid = styles.getPropertyValue("--tinote-line") || "#ddd";
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11px ${styles.fontFamily || "sans-serif"}`;
  const rows = history.rows();
  let low = Infinity;
  let high = -Infinity;
  for (const row of rows) {
    for (let column = 1; column < row.length; column += 1) {
      if (Number.isFinite(row[column])) {
        low = Math.min(low, row[column]);
        high = Math.max(high, row[column]);
      }
    }
  }
  if (low > high) [low, high] = [0, 1];
  else {
    const flat = high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high));
    const air = flat ? 0.1 * Math.abs(high) || 1 : 0.06 * (high - low);
    [low, high] = [low - air, high + air];
  }
  const start = rows.length ? rows[0][0] : 0;
  const stop = rows.length && rows[rows.length - 1][0] > start ? rows[rows.length - 1][0] : start + 1;
  const levels = niceTicks(low, high, 4);
  const levelStep = levels.length > 1 ? levels[1] - levels[0] : high - low;
  const labels = levels.map((value) => tickText(value, levelStep));
  const left = Math.max(0, ...labels.map((label) => context.measureText(label).width)) + (yLabel ? 26 : 10);
  const right = width - 10;
  const top = 8;
  const bottom = height - 34;
  const x = (value) => left + ((value - start) / (stop - start)) * (right - left);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  context.lineWidth = 1;
  context.strokeStyle = grid;
  context.fillStyle = ink;
  context.textAlign = "right";
  context.textBaseline = "middle";
  levels.forEach((value, index) => {
    const at = Math.round(y(value)) + 0.5;
    context.globalAlpha = 0.6;
    context.beginPath();
    context.moveTo(left, at);
    context.lineTo(right, at);
    context.stroke();
    context.globalAlpha = 1;
    context.fillText(labels[index], left - 5, at);
  });
  context.textAlign = "center";
  context.textBaseline = "top";
  const columns = niceTicks(start, stop, Math.min(5, stop - start)); // Steps are whole numbers.
  const columnStep = columns.length > 1 ? columns[1] - columns[0] : 1;
  for (const value of columns) context.fillText(tickText(value, columnStep), x(value), bottom + 5);
  context.textBaseline = "bottom";
  context.fillText(xLabel, (left + right) / 2, height - 2);
  if (yLabel) {
    context.save();
    context.translate(3, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "top";
    context.fillText(yLabel, 0, 0);
    context.restore();
  }
  const draw = Object.hasOwn(CHART_KINDS, kind) ? CHART_KINDS[kind] : CHART_KINDS.line;
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  names.forEach((_, series) => {
    context.strokeStyle = SERIES_COLORS[dark ? "dark" : "light"][series];
    context.beginPath();
    const runs = finiteRuns(rows, series + 1, (row) => [x(row[0]), y(row[series + 1])]);
    for (const places of runs) draw(context, places);
    context.stroke();
  });
  if (!marked) return;
  const at = Math.round(x(marked[0])) + 0.5;
  context.lineWidth = 1;
  context.strokeStyle = ink;
  context.beginPath();
  context.moveTo(at, top);
  context.lineTo(at, bottom);
  context.stroke();
  names.forEach((_, series) => {
    if (!Number.isFinite(marked[series + 1])) return;
    context.fillStyle = SERIES_COLORS[dark ? "dark" : "light"][series];
    context.beginPath();
    context.arc(at, y(marked[series + 1]), 3.5, 0, 2 * Math.PI);
    context.fill();
  });
}
