// What a view shows, read of a program's memory or of the page's own data: numbers, colours, points. The rules are
// those of `viz/draw/arrays.py`, `viz/live/mark_values.py` and `viz/draw/colormap.py`.

const LEVEL_SLACK = 1e-6; // Logarithms differ by less between Python and pages.
const LEVELS = 255;

/** Numbers of a type of Python's as such that arithmetic takes. */
function asNumbers(data, type) {
  if (type === "f16") return Float32Array.from(data, halfNumber);
  return type === "i64" || type === "u64" ? Float64Array.from(data, Number) : data;
}

/** Numbers as 0 to 255 of a colour's part, which are fractions. */
function asBytes(parts) {
  const bytes = new Uint8Array(parts.length);
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at];
    bytes[at] = part > 0 ? (part < 1 ? part * 255 + 0.5 : 255) : 0; // NaN is 0.
  }
  return bytes;
}

/**
 * What sources hold: a source names a `field` of the program, perhaps after a `program` that computes it, or has `data`
 * of its own. `read` gives `{ data, type, shape }`, the numbers in a row.
 */
class Sources {
  /** `run(name)` runs a program; without it, `program` does. */
  constructor(program, run = (name) => program.run(name)) {
    Object.assign(this, { program, run });
    this.types = new Map(program.fields.map((field) => [field.name, field]));
  }
  read(source) {
    if (source.program) this.run(source.program);
    if (source.data) {
      source.numbers ??= asNumbers(new ARRAYS[source.type](source.data.slice().buffer), source.type);
      return { data: source.numbers, type: source.type, shape: source.shape };
    }
    const { type } = this.types.get(source.field);
    return { data: asNumbers(this.program.read(source.field), type), type, shape: source.shape };
  }
  /** Points, `dimensions` numbers each. Those of types other than f32 are computed with as f64. */
  points(source) {
    const { data, type, shape } = this.read(source);
    const dimensions = shape[shape.length - 1];
    return { data, dimensions, count: data.length / dimensions, isSingle: type === "f32" };
  }
  /** What parts of a mark are painted with: `colors`, three bytes each, of one or of all, or `numbers` for a map. */
  inks(source) {
    const found = this.read(source);
    if (source.as === "numbers") return { numbers: found.data, isSingle: found.type === "f32" };
    return { colors: colorsOf(found, source.as), isOne: Boolean(source.isOne) };
  }
}

/** Colours, three bytes each: of 0xRRGGBB ("packed"), of bytes, or of fractions, which may have a fourth part. */
function colorsOf({ data, shape }, as) {
  if (as === "bytes") return Uint8Array.from(data);
  const parts = as === "packed" ? 1 : shape[shape.length - 1];
  const count = data.length / parts;
  const bytes = as === "packed" ? null : asBytes(data);
  const colors = new Uint8Array(3 * count);
  for (let at = 0; at < count; at += 1)
    for (let part = 0; part < 3; part += 1)
      colors[3 * at + part] = bytes ? bytes[parts * at + part] : (data[at] >> (16 - 8 * part)) & 255;
  return colors;
}

/**
 * The level of each number between two limits, or between the least and the greatest; with `aroundZero`, zero is in the
 * middle.
 */
function levelsOf(numbers, isSingle, { limits, aroundZero, norm = "linear" }) {
  const round = isSingle ? Math.fround : (value) => value;
  let [low, high] = limits ?? [Infinity, -Infinity];
  let strange = 0;
  for (let at = 0; at < numbers.length; at += 1) {
    const value = numbers[at];
    if (!Number.isFinite(value)) strange += 1;
    else if (!limits && !(norm === "log" && value <= 0)) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) [low, high] = norm === "log" ? [0.1, 1] : [0, 1];
  else if (!limits && aroundZero) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
  const [first, factor] = [round(low), round(LEVELS / (high > low ? high - low : 1))];
  const [kind, bend] = [norm].flat();
  const scale = new Scale(kind, low, high, bend);
  // What a logarithm has no place for has the lowest colour.
  const place = (value) => scale.place(kind === "log" ? Math.max(value, 0) : value) * LEVELS + LEVEL_SLACK;
  const level = kind === "linear" ? (value) => round(round(value - first) * factor) : place;
  const codes = new Uint8Array(numbers.length);
  for (let at = 0; at < numbers.length; at += 1) {
    const value = numbers[at];
    codes[at] = Number.isFinite(value) ? Math.min(Math.max(level(value), 0), LEVELS - 1) : LEVELS;
  }
  return { codes, low, high, strange };
}

/**
 * Inks by name (`Sources.inks`) with their numbers on a common scale: `{ colors }` or `{ codes, colors }`; and the ends
 * of the scale for a frame's message, if there are numbers.
 */
function readInks(found, scale) {
  const inks = {};
  const numbered = Object.entries(found).filter(([name, ink]) => {
    if (!ink.numbers) inks[name] = ink;
    return ink.numbers;
  });
  if (!numbered.length) return { inks, message: {} };
  const isSingle = numbered.every(([, ink]) => ink.isSingle);
  const all = new (isSingle ? Float32Array : Float64Array)(
    numbered.reduce((sum, [, ink]) => sum + ink.numbers.length, 0),
  );
  let at = 0;
  for (const [, { numbers }] of numbered) {
    all.set(numbers, at);
    at += numbers.length;
  }
  const { codes, low, high, strange } = levelsOf(all, isSingle, scale);
  at = 0;
  for (const [name, { numbers }] of numbered) {
    const own = codes.slice(at, at + numbers.length);
    inks[name] = new MappedInk(scale.colors, own);
    at += numbers.length;
  }
  return { inks, message: { low, high, strange } };
}

/** Inks by codes in a map of three bytes each: few views need the colours that they stand for. */
class MappedInk {
  constructor(map, codes) {
    Object.assign(this, { map, codes, isOne: false });
  }
  get colors() {
    const { map, codes } = this;
    const colors = new Uint8Array(3 * codes.length);
    for (let at = 0; at < codes.length; at += 1)
      for (let part = 0; part < 3; part += 1) colors[3 * at + part] = map[3 * codes[at] + part];
    Object.defineProperty(this, "colors", { value: colors });
    return colors;
  }
}

/** The bytes of an array, on their way to the views. */
function bytesOf(array) {
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

/** A frame with further binary parts, in the order of their names in its message; what is empty is not sent. */
function frameOf(message, buffers, parts) {
  const used = Object.entries(parts).filter(([, part]) => part.length);
  if (used.length) message.parts = used.map(([name]) => name);
  return { message, buffers: [...buffers, ...used.map(([, part]) => part)].map(bytesOf) };
}
