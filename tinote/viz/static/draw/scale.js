// How numbers lie along an axis or a colour map, and ticks at round numbers, by the rules of `viz/draw/scale.py`.

const AIR = 0.06; // Parts of the range that an axis has beyond the values at both ends.
const FEWEST_TICKS = 3;

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
    if (last - first + 1 >= Math.min(about, FEWEST_TICKS)) break;
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

/** A number next to a view, with so many digits. */
function numberText(value, digits = 4) {
  if (!Number.isFinite(value)) return signed(String(value));
  const size = Math.abs(value);
  if (size && (size >= 1e6 || size < 1e-4)) return timesPower(value.toExponential(digits - 1));
  return signed(String(Number(value.toPrecision(digits))));
}

/** A number that is known to `step`: no digit says more than that. */
function roundedText(value, step) {
  if (!(step > 0)) return numberText(value);
  return tickText(value, 10 ** Math.floor(Math.log10(step) + 1e-9));
}

const raisedTo = (one, power) => (power >= 0 ? one * 10 ** power : one / 10 ** -power);

/** Powers of ten between positive numbers, or 1, 2 and 5 times them where there are few: digits and exponents. */
function powersOfTen(low, high, about, onlyOnes = false) {
  if (!(low > 0 && low <= high && high < Infinity)) return [];
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const fewest = Math.min(about, FEWEST_TICKS);
  for (let every = Math.max(1, Math.ceil((last - first + 1) / Math.max(about, 1))); every > 0; every -= 1) {
    const powers = [];
    for (let power = first; power <= last; power += 1) if (power % every === 0) powers.push([1, power]);
    if (powers.length >= fewest || (onlyOnes && powers.length)) return powers;
  }
  const finer = [];
  for (let power = first - 1; !onlyOnes && power <= last; power += 1)
    for (const one of [1, 2, 5]) {
      const value = raisedTo(one, power);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) finer.push([one, power]);
    }
  return finer;
}

/** A scale of a kind from `low` to `high`; a symmetric logarithm is about linear up to `bend`. */
class Scale {
  constructor(kind, low, high, bend = 0) {
    if (kind === "symlog" && !bend) {
      const most = Math.max(Math.abs(low), Math.abs(high));
      bend = most > 0 ? 10 ** (Math.floor(Math.log10(most) + 1e-9) - 2) : 1;
    }
    Object.assign(this, { kind, low, high, bend });
    [this.first, this.last] = [this.forward(low), this.forward(high)];
  }
  /** The scale that shows these values, or from one limit to the other. `form`: a kind, or one with its bend. */
  static fitted(form, values, limits) {
    const [kind, bend] = [form].flat();
    if (limits) return new Scale(kind, ...limits, bend);
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (!Number.isFinite(value) || (kind === "log" && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return kind === "log" ? new Scale(kind, 0.1, 10) : new Scale(kind, 0, 1, bend);
    const scale = new Scale(kind, low, high, bend);
    if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high))) {
      if (kind === "log") return new Scale(kind, low / 10, high * 10);
      const air = 0.1 * Math.abs(high) || 1;
      return new Scale(kind, low - air, high + air, scale.bend);
    }
    const air = AIR * (scale.last - scale.first);
    return new Scale(kind, scale.backward(scale.first - air), scale.backward(scale.last + air), scale.bend);
  }
  forward(value) {
    if (this.kind === "linear") return value;
    return this.kind === "log" ? Math.log10(value) : Math.asinh(value / this.bend);
  }
  backward(value) {
    if (this.kind === "linear") return value;
    return this.kind === "log" ? 10 ** Math.min(Math.max(value, -307), 308) : this.bend * Math.sinh(value);
  }
  /** The part of the axis at which a number lies. */
  place(value) {
    return (this.forward(value) - this.first) / (this.last - this.first || 1);
  }
  /** The number that lies at a part of the axis. */
  at(part) {
    return this.backward(this.first + part * (this.last - this.first));
  }
  /** About so many ticks: numbers with their texts. */
  ticks(about) {
    const { kind, low, high, bend } = this;
    let found = [];
    if (kind === "log") found = powersOfTen(low, high, about);
    else if (kind === "symlog") {
      const both = low < 0 && high > 0;
      const each = both ? Math.max(2, Math.floor(about / 2)) : about;
      if (low < 0)
        found = powersOfTen(Math.max(bend, -high), -low, each, both)
          .reverse()
          .map(([one, power]) => [-one, power]);
      if (low <= 0 && high >= 0) found.push([0, 0]);
      if (high > 0) found.push(...powersOfTen(Math.max(bend, low), high, each, both));
    }
    if (found.length < Math.min(about, FEWEST_TICKS)) {
      const ticks = niceTicks(low, high, about);
      const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low;
      return ticks.map((value) => ({ value, text: tickText(value, step) }));
    }
    const isPlain = found.every(([, power]) => power >= -3 && power <= 4); // All are written alike.
    return found.map(([one, power]) => {
      const value = raisedTo(one, power);
      if (!one) return { value: 0, text: "0" };
      return { value, text: isPlain ? signed(String(value)) : timesPower(`${one}e${power}`) };
    });
  }
  /** What an axis is drawn by: a label, and where ticks stand. */
  axis(label, about) {
    return { label, ticks: this.ticks(about).map(({ value, text }) => ({ at: this.place(value), text })) };
  }
}
