// The frames of a scene in space: what `viz/space/content.py`, `geometry.py` and `parts.py` make of arrays.

const MOST_LEVEL = 65535;

/** The normals of a mesh's vertices: the mean of the triangles around each, by their area. */
function vertexNormals(vertices, triangles) {
  const normals = new Float32Array(vertices.length);
  for (let t = 0; t < triangles.length; t += 3) {
    const [a, b, c] = [3 * triangles[t], 3 * triangles[t + 1], 3 * triangles[t + 2]];
    const u = [0, 1, 2].map((axis) => vertices[b + axis] - vertices[a + axis]);
    const v = [0, 1, 2].map((axis) => vertices[c + axis] - vertices[a + axis]);
    const normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    if (!(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2 < 1e30)) continue; // What is not finite is left out.
    for (const corner of [a, b, c]) for (let axis = 0; axis < 3; axis += 1) normals[corner + axis] += normal[axis];
  }
  return unitVectors(normals, [0, 0, 1]);
}

/** Vectors as long as 1; one without length is `none`. */
function unitVectors(vectors, none) {
  const found = new Float32Array(vectors.length);
  for (let at = 0; at < vectors.length; at += 3) {
    const length = Math.hypot(vectors[at], vectors[at + 1], vectors[at + 2]);
    for (let axis = 0; axis < 3; axis += 1) found[at + axis] = length > 0 ? vectors[at + axis] / length : none[axis];
  }
  return found;
}

/** The pairs of vertices that triangles have for edges, each once, in order. */
function edgesOf(triangles) {
  const keys = new Set();
  for (let t = 0; t < triangles.length; t += 3)
    for (const [one, other] of [
      [0, 1],
      [1, 2],
      [2, 0],
    ]) {
      const [a, b] = [triangles[t + one], triangles[t + other]];
      keys.add(Math.min(a, b) * 2 ** 26 + Math.max(a, b));
    }
  return Int32Array.from([...keys].sort((a, b) => a - b).flatMap((key) => [Math.floor(key / 2 ** 26), key % 2 ** 26]));
}

/** Positions as fractions of the box around them, four numbers each, of which the last is 0 where one is not finite. */
function packedPositions(points) {
  const [low, high] = [
    [Infinity, Infinity, Infinity],
    [-Infinity, -Infinity, -Infinity],
  ];
  const count = points.length / 3;
  const isFinite = (at) => Number.isFinite(points[at] + points[at + 1] + points[at + 2]);
  for (let at = 0; at < points.length; at += 3)
    if (isFinite(at))
      for (let axis = 0; axis < 3; axis += 1) {
        low[axis] = Math.min(low[axis], points[at + axis]);
        high[axis] = Math.max(high[axis], points[at + axis]);
      }
  const packed = new Uint16Array(4 * count);
  if (low[0] > high[0]) return { packed, low: [0, 0, 0], high: [1, 1, 1] };
  const span = low.map((first, axis) => (high[axis] > first ? Math.fround(high[axis] - first) : 1));
  const factor = span.map((part) => Math.fround(MOST_LEVEL / part));
  for (let n = 0; n < count; n += 1) {
    if (!isFinite(3 * n)) continue;
    packed[4 * n + 3] = MOST_LEVEL;
    for (let axis = 0; axis < 3; axis += 1) {
      const part = Math.fround(Math.fround(points[3 * n + axis] - low[axis]) * factor[axis]);
      packed[4 * n + axis] = Math.min(Math.fround(part + 0.5), MOST_LEVEL);
    }
  }
  return { packed, low, high: low.map((first, axis) => Math.fround(first + span[axis])) };
}

/** Unit vectors as bytes, four each. */
function packedNormals(normals) {
  const packed = new Int8Array((4 * normals.length) / 3);
  for (let at = 0; at < normals.length; at += 1) {
    const scaled = Math.fround((Number.isNaN(normals[at]) ? 0 : normals[at]) * 127);
    const near = Math.round(scaled);
    packed[4 * Math.floor(at / 3) + (at % 3)] = near - scaled === 0.5 && near % 2 ? near - 1 : near; // Half to even.
  }
  return packed;
}

/** What becomes of the arrays of a thing, by their names. */
const TAKEN = {
  points: ({ data }) => Float32Array.from(data),
  radii: ({ data }) => Float32Array.from(data),
  pairs: ({ data }) => Int32Array.from(data),
  triangles: ({ data }) => Int32Array.from(data),
  colors: (found, { as }) => colorsOf(found, as),
  normals: ({ data }) => packedNormals(unitVectors(data, [0, 0, 0])),
  // As WebGL has matrices.
  transforms: ({ data }) =>
    Float32Array.from(data, (_, at) => data[16 * Math.floor(at / 16) + 4 * (at % 4) + (Math.floor(at / 4) % 4)]),
};

FRAMES_OF.scene = class extends Frames {
  constructor(sources, look, traits) {
    super(sources, look, traits);
    this.forget();
    this.nextNumber = 0;
    this.draws = false;
    this.reason = "";
    this.eye = look.eye;
    this.picked = ""; // What was clicked last, in words.
  }
  /** The page has nothing yet. */
  forget() {
    this.sent = new Map();
  }
  capture() {
    const { look } = this;
    const things = look.things.map((thing) => this.item(thing));
    const message = { primitives: things.reduce((sum, thing) => sum + thing.primitives, 0), eyeVersion: 1 };
    if (look.box) message.box = look.box;
    if (this.picked) message.picked = this.picked;
    if (!this.draws) {
      // Nobody draws where the page cannot: it shows what the scene was when the page was made.
      if (this.reason) message.reason = "a picture: this page draws scenes by WebGL, which is missing here";
      return { message: { ...message, picture: "image/webp", eye: look.eye }, buffers: [bytesOf(look.still.slice())] };
    }
    const numbers = [];
    const buffers = [];
    const slots = new Map();
    const named = (place, name, array) => {
      const key = `${place} ${name}`;
      let known = this.sent.get(key);
      if (!known || !sameArrays(known.array, array)) {
        known = { number: (this.nextNumber += 1), array };
        numbers.push(known.number);
        buffers.push(bytesOf(array.slice()));
      }
      slots.set(key, known);
      return known.number;
    };
    const items = things.map(({ item, arrays, points }, place) => {
      const { packed, low, high } = packedPositions(points);
      const found = { ...item, count: points.length / 3, positions: named(place, "positions", packed), low, high };
      for (const [name, array] of Object.entries(arrays)) found[name] = named(place, name, array);
      return found;
    });
    this.sent = slots;
    return {
      message: { ...message, scene: { parts: numbers, items, lighting: look.lighting, eye: look.eye } },
      buffers,
    };
  }
  /** A thing as the page gets it: what stays a description, the arrays that go with it, and how much it is. */
  item({ item, name: _, ...sources }) {
    const arrays = {};
    for (const [name, source] of Object.entries(sources)) arrays[name] = TAKEN[name](this.sources.read(source), source);
    const { points, triangles, colors } = arrays;
    delete arrays.points;
    if (item.kind === "mesh") arrays.normals ??= packedNormals(vertexNormals(points, triangles));
    else if (triangles) {
      arrays.pairs = edgesOf(triangles);
      delete arrays.triangles;
    }
    const { pairs, transforms } = arrays;
    let primitives = points.length / 3;
    if (pairs) primitives = pairs.length / 2;
    else if (triangles) primitives = ((transforms?.length ?? 16) / 16) * (triangles.length / 3);
    return { points, primitives, item: { ...item, colored: colors.length > 3 }, arrays };
  }
  /** What was added and is seen at a place. */
  wordsAt(across, up) {
    const { things, added } = this.look;
    const shown = things.slice(0, added);
    const { width, height } = this.traits;
    const found = pickedAt(shown.map((thing) => this.item(thing)), this.eye, [width, height], [across, up]);
    return found ? pickedText(found, shown[found.thing].name, added) : "";
  }
  /** The page has moved the camera, picks, or says whether it draws. */
  obey(message) {
    if (message.kind === "camera") {
      const { position, target } = message;
      this.eye = { ...this.eye, position, target, near: 1e-3 * norm(minus(position, target)) };
      return null;
    }
    if (message.kind === "pick") {
      this.picked = this.wordsAt(...message.place);
      return {};
    }
    if (message.kind !== "look") return null;
    if (message.draws && !this.draws) this.forget();
    [this.draws, this.reason] = [message.draws, message.reason];
    return {};
  }
};

function sameArrays(one, other) {
  return (
    one.length === other.length &&
    one.every((value, at) => value === other[at] || (value !== value && other[at] !== other[at]))
  );
}
