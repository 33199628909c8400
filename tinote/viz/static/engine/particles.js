// The frames of a view of particles: what `viz/live/particles.py` and `marks.py` make of arrays.

const GRASPED = 2; // Radii from which a particle is grabbed.
const DENSITY_COUNT = 150000;
const AXES_ROOM = 1.25; // How much more than the box is seen in space where it has axes.
const UNIT = [
  [0, 1],
  [0, 1],
];

/** Radii in pixels: what is none is 0. */
function sizesOf(radii) {
  const sizes = new Float32Array(radii.length);
  for (let at = 0; at < radii.length; at += 1) sizes[at] = Number.isFinite(radii[at]) && radii[at] > 0 ? radii[at] : 0;
  return sizes;
}

FRAMES_OF.particles = class extends Frames {
  constructor(sources, look, traits) {
    super(sources, look, traits);
    this.trail = traits.marks.trail ? new TrailRows(traits.marks.trail.length) : null;
    [this.azimuth, this.elevation] = [look.azimuth, look.elevation];
    this.depth = 0; // Of the plane in which the pointer moves in space.
  }
  sight(points) {
    const { bounds } = this.look;
    if (points.dimensions === 2) return new PlaneSight(bounds, points.isSingle);
    const room = this.look.box.axes.length ? AXES_ROOM : 1;
    return new SpaceSight(bounds, this.azimuth, this.elevation, this.traits.width / this.traits.height, room);
  }
  /** What particles are painted with: colours that they keep are known to the page. */
  inks() {
    const { color } = this.look;
    return color ? this.sources.inks(color) : { colors: new Uint8Array(0), isOne: false };
  }
  capture(step) {
    const { look, sources } = this;
    const points = sources.points(look.x);
    const found = { color: this.inks() };
    if (look.edges) found.edges = sources.inks(look.edge_color);
    if (look.arrows) found.arrows = sources.inks(look.arrow_color);
    const { inks, message } = readInks(found, this.map);
    const sight = this.sight(points);
    const parts = {};
    this.layMarks(points, step, sight, inks, message, parts);
    let radii = look.radius ? sizesOf(sources.read(look.radius).data) : null;
    const inSpace = points.dimensions === 3;
    let ink = inks.color;
    let places = null;
    if (inSpace) {
      Object.assign(message, { box: look.box, eye: sight.eye() });
      const seen = sight.see(points);
      ink = { colors: faded(ink, seen), isOne: false };
      places = { data: Float64Array.from(seen.flatMap(({ place }) => place)), count: seen.length, isSingle: false };
      if (radii) radii = Float32Array.from(seen, ({ index }) => radii[index]);
    }
    if (radii) parts.radii = radii;
    message.count = points.count;
    if (!inSpace && points.count > DENSITY_COUNT && ink.isOne && !radii && !this.traits.glow)
      return this.density(points, message, parts);
    const { packed, shown } = this.pack(places ?? points, inSpace ? UNIT : look.bounds);
    message.outside = points.count - shown;
    if (ink.codes) parts.codes = ink.codes;
    const colors = !ink.isOne && !ink.codes && (inSpace || !look.isFixed) ? ink.colors : new Uint8Array(0);
    return frameOf(message, [packed, colors], parts);
  }
  /** Positions as 16-bit fractions of the bounds. */
  pack({ data, count, isSingle }, bounds) {
    const round = isSingle ? Math.fround : (value) => value;
    const most = HIDDEN - 1;
    const low = bounds.map(([first]) => round(first));
    const factor = bounds.map(([first, last]) => round(most / round(round(last) - round(first))));
    const packed = new Uint16Array(2 * count);
    let shown = 0;
    for (let at = 0; at < packed.length; at += 2) {
      const u = round(round(data[at] - low[0]) * factor[0]);
      const v = round(round(data[at + 1] - low[1]) * factor[1]);
      const isInside = u >= 0 && u <= most && v >= 0 && v <= most; // False for NaN as well.
      packed[at] = isInside ? u : HIDDEN;
      packed[at + 1] = isInside ? v : HIDDEN;
      shown += isInside;
    }
    return { packed, shown };
  }
  /** How many particles lie in each pixel, as a cover. */
  density({ data, count }, message, parts) {
    const { width, height } = this.traits;
    const [[left, right], [bottom, top]] = this.look.bounds;
    const counts = new Int32Array(width * height);
    let inside = 0;
    for (let at = 0; at < count; at += 1) {
      const u = ((data[2 * at] - left) * width) / (right - left);
      const v = ((data[2 * at + 1] - bottom) * height) / (top - bottom);
      if (!(u >= 0 && v >= 0 && u <= width && v <= height)) continue;
      counts[(height - 1 - Math.min(Math.trunc(v), height - 1)) * width + Math.min(Math.trunc(u), width - 1)] += 1;
      inside += 1;
    }
    const mean =
      inside /
      Math.max(
        counts.reduce((sum, number) => sum + (number > 0), 0),
        1,
      );
    const cover = Uint8Array.from(counts, (number) => -255 * Math.expm1(-number / Math.max(mean, 1e-9)) + 0.5);
    return frameOf({ ...message, outside: count - inside, cover: "bytes" }, [cover, new Uint8Array(0)], parts);
  }
  layMarks(points, step, sight, inks, message, parts) {
    const { look, sources } = this;
    const { data, count, dimensions } = points;
    const note = (name, begin, end, middles) => {
      const ink = sight.shaded(inks[name], middles);
      const { ends, index } = asStrokes(begin, end);
      parts[name] = ends;
      if (ink.codes) parts[`${name}_inks`] = Uint8Array.from(index, (one) => ink.codes[one]);
      else if (!ink.isOne)
        parts[`${name}_inks`] = Uint8Array.from(index.flatMap((one) => [...ink.colors.subarray(3 * one, 3 * one + 3)]));
    };
    if (look.edges) {
      const pairs = sources.read(look.edges).data;
      const places = sight.places(points);
      const number = pairs.length / 2;
      const [begin, end] = [new Float64Array(2 * number), new Float64Array(2 * number)];
      const middles = { data: new Float64Array(dimensions * number), count: number };
      for (let at = 0; at < number; at += 1) {
        const [one, other] = [pairs[2 * at], pairs[2 * at + 1]];
        if (!(one >= 0 && other >= 0 && one < count && other < count) && !(one === NO_EDGE && other === NO_EDGE))
          throw new Error(`edge ${at} joins the particles ${one} and ${other}, and there are ${count}`);
        begin.set(one === NO_EDGE ? [NaN, NaN] : places.subarray(2 * one, 2 * one + 2), 2 * at);
        end.set(one === NO_EDGE ? [NaN, NaN] : places.subarray(2 * other, 2 * other + 2), 2 * at);
        for (let axis = 0; axis < dimensions; axis += 1)
          middles.data[dimensions * at + axis] = (data[dimensions * one + axis] + data[dimensions * other + axis]) / 2;
      }
      note("edges", begin, end, middles);
    }
    if (look.arrows) {
      const vectors = sources.read(look.arrows).data;
      let longest = 0;
      for (let at = 0; at < count; at += 1) {
        const square = vectors
          .slice(dimensions * at, dimensions * (at + 1))
          .reduce((sum, part) => sum + part * part, 0);
        if (Number.isFinite(square)) longest = Math.max(longest, square);
      }
      longest = Math.sqrt(longest);
      const scale = look.arrow_scale ?? (longest > 0 ? (LONGEST_ARROW * sight.extent) / longest : 0);
      const tips = { data: Float64Array.from(data, (part, at) => part + scale * vectors[at]), count };
      note("arrows", sight.places(points), sight.tips(tips), points);
      message.longest = longest;
    }
    if (this.trail) {
      this.trail.add(step, points, sight);
      if (dimensions === 3 && !this.traits.marks.trail.color) {
        const { codes, colors, isOne } = inks.color;
        parts.trail_inks =
          codes ?? (isOne ? Uint8Array.from({ length: 3 * count }, (_, at) => colors[at % 3]) : colors);
      }
    }
  }
  kept(whole) {
    return this.trail ? this.trail.part(whole) : { message: {}, buffers: [] };
  }
  /** The position at a place of the stage, and the particle that is pressed there. */
  pick(across, up, isPressed) {
    const points = this.sources.points(this.look.x);
    const found = isPressed ? this.foundAt(points, across, up) : null;
    const element = found?.index ?? null;
    if (points.dimensions === 2) {
      const { bounds } = this.look;
      return { position: bounds.map(([low, high], axis) => low + [across, up][axis] * (high - low)), element };
    }
    if (isPressed) this.depth = found?.depth ?? 0;
    return { position: this.sight(points).pointAt([across, up], this.depth), element };
  }
  /** Which of the particles is at a place of the stage; null where none is. */
  foundAt(points, across, up) {
    const { data, count, dimensions } = points;
    const { width, height, radius } = this.traits;
    const reach = Math.max(GRASPED * radius, this.traits.reach);
    const away = ([x, y]) => Math.hypot((x - across) * width, (y - up) * height);
    if (dimensions === 3) {
      const seen = this.sight(points).see(points);
      const under = seen.filter(({ place }) => away(place) <= radius + 1);
      const near = seen.filter(({ place }) => away(place) <= reach).sort((a, b) => away(a.place) - away(b.place));
      return under[under.length - 1] ?? near[0] ?? null; // The last one is in front.
    }
    let [found, least] = [null, reach];
    for (let index = 0; count <= DENSITY_COUNT && index < count; index += 1) {
      const place = this.look.bounds.map(([low, high], axis) => (data[2 * index + axis] - low) / (high - low));
      if (!place.every((part) => part >= 0 && part <= 1) || !(away(place) <= least)) continue;
      if (found === null || away(place) < least) [found, least] = [{ index }, away(place)];
    }
    return found;
  }
  wordsAt(across, up) {
    const { look, sources } = this;
    const points = sources.points(look.x);
    const found = this.foundAt(points, across, up);
    if (!found) return "";
    const place = [...points.data.slice(points.dimensions * found.index, points.dimensions * (found.index + 1))];
    const { numbers } = this.inks();
    const value = numbers ? [`${this.traits.color_label || "value"} ${numberText(numbers[found.index])}`] : [];
    const texts = place.map((part, axis) => `${look.labels[axis]} ${numberText(part)}`);
    return [`particle ${found.index.toLocaleString("en")}`, texts.join(", "), ...value].join(" · ");
  }
  /** The page has turned the camera, or wants all particles to be in the bounds. Gives the traits that follow. */
  obey(message) {
    if (message.kind === "fit") return this.fit(this.sources.points(this.look.x));
    if (message.kind !== "turn") return super.obey(message);
    this.azimuth = (((this.azimuth + message.by[0]) % 360) + 360) % 360;
    this.elevation = Math.min(Math.max(this.elevation + message.by[1], -HIGHEST), HIGHEST);
    return {};
  }
  fit({ data, count, dimensions }) {
    const { width, height, axes_shown: axes } = this.traits;
    const sides = dimensions === 2 ? [width, height] : [1, 1, 1];
    const ends = sides.map(() => [Infinity, -Infinity]);
    for (let at = 0; at < count; at += 1) {
      const point = data.subarray(dimensions * at, dimensions * (at + 1));
      if (point.every(Number.isFinite))
        point.forEach((part, axis) => {
          ends[axis] = [Math.min(ends[axis][0], part), Math.max(ends[axis][1], part)];
        });
    }
    if (ends[0][0] > ends[0][1]) return {};
    const most = Math.max(...ends.map(([low, high], axis) => (high - low) / sides[axis])) || 1 / Math.max(...sides);
    const bounds = ends.map(([low, high], axis) => {
      const [middle, reach] = [(low + high) / 2, 0.55 * most * sides[axis]];
      return [middle - reach, middle + reach];
    });
    this.look.bounds = bounds;
    if (dimensions === 3) {
      const fitted = ({ label }, axis) => new Scale("linear", ...bounds[axis]).axis(label, 4);
      this.look.box = { ...this.look.box, bounds, axes: this.look.box.axes.map(fitted) };
    }
    if (this.trail) this.trail = new TrailRows(this.traits.marks.trail.length);
    if (!axes.ranges) return {};
    const fitted = { ...axes, ranges: bounds };
    for (const [axis, name] of ["x", "y"].entries()) {
      const ticks = Math.max(3, Math.trunc(sides[axis] / 80));
      if (axes[name]) fitted[name] = new Scale("linear", ...bounds[axis]).axis(axes[name].label, ticks);
    }
    this.traits.axes_shown = fitted;
    return { axes_shown: fitted };
  }
};
