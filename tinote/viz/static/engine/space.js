// Points in space as a camera that circles the box of the bounds sees them: what `viz/live/projection.py` makes of
// arrays.

const DISTANCE = 4; // Of the camera from the middle of the box, in radii of the sphere around it.
const FOG = [0x8a, 0x90, 0x99];
const THICKEST_FOG = 0.65;
const NEAREST = 3;
const HIGHEST = 89;

/**
 * A box in space, three pairs, as a camera at angles in degrees sees it in a picture of that width over height, and
 * `room` times as much.
 */
class SpaceSight {
  constructor(bounds, azimuth, elevation, aspect, room) {
    const [around, above] = [(azimuth * Math.PI) / 180, (elevation * Math.PI) / 180];
    this.bounds = bounds;
    this.towards = [Math.cos(above) * Math.cos(around), Math.cos(above) * Math.sin(around), Math.sin(above)];
    this.right = [-Math.sin(around), Math.cos(around), 0];
    const [[a, b, c], [d, e, f]] = [this.towards, this.right];
    this.up = [b * f - c * e, c * d - a * f, a * e - b * d];
    this.center = bounds.map(([low, high]) => (low + high) / 2);
    this.radius = 0.5 * Math.hypot(...bounds.map(([low, high]) => high - low));
    this.shares = [Math.max(aspect, 1) * room, Math.max(1 / aspect, 1) * room];
    this.extent = Math.min(...bounds.map(([low, high]) => high - low));
    this.key = `${azimuth} ${elevation} ${aspect}`;
  }
  scale(depth) {
    return Math.sqrt(DISTANCE ** 2 - 1) / (DISTANCE - depth);
  }
  /** Where a point is in front of the middle of the box, in radii of the sphere around it, and where in the picture. */
  seen(x, y, z) {
    const at = [x, y, z].map((part, axis) => (part - this.center[axis]) / this.radius);
    const along = (axis) => at[0] * axis[0] + at[1] * axis[1] + at[2] * axis[2];
    const depth = along(this.towards);
    const scale = this.scale(depth);
    return {
      depth,
      place: [
        0.5 + (0.5 * along(this.right) * scale) / this.shares[0],
        0.5 + (0.5 * along(this.up) * scale) / this.shares[1],
      ],
      nearness: Math.min(Math.max((depth + 1) / 2, 0), 1),
    };
  }
  contains(x, y, z) {
    const [[a, b], [c, d], [e, f]] = this.bounds;
    return x >= a && x <= b && y >= c && y <= d && z >= e && z <= f;
  }
  places(points) {
    return this.placesOf(points, (point) => this.contains(...point));
  }
  /** The same of the ends of arrows, which may leave the box. */
  tips(points) {
    return this.placesOf(points, (_, { depth }) => depth < NEAREST);
  }
  placesOf({ data, count }, isShown) {
    const places = new Float64Array(2 * count).fill(NaN);
    for (let at = 0; at < count; at += 1) {
      const point = data.slice(3 * at, 3 * at + 3);
      const found = this.seen(...point);
      if (isShown(point, found)) places.set(found.place, 2 * at);
    }
    return places;
  }
  /** An ink, of `middles.count` parts, as it looks at their distances. */
  shaded(ink, { data, count }) {
    const middles = Array.from({ length: count }, (_, index) => {
      const point = Array.from(data.slice(3 * index, 3 * index + 3), (part) => (Number.isFinite(part) ? part : 0));
      return { index, nearness: this.seen(...point).nearness };
    });
    return { colors: faded(ink, middles), isOne: false };
  }
  /** What is seen of points: those in the box, the farthest first. */
  see({ data, count }) {
    const found = [];
    for (let at = 0; at < count; at += 1) {
      const point = data.slice(3 * at, 3 * at + 3);
      if (this.contains(...point)) found.push({ index: at, ...this.seen(...point) });
    }
    return found.sort((a, b) => a.nearness - b.nearness);
  }
  /** The camera, as it draws the box. */
  eye() {
    const from = (away) => this.center.map((part, axis) => part + away * this.radius * this.towards[axis]);
    return {
      position: from(DISTANCE),
      target: this.center,
      up: [0, 0, 1],
      field_of_view: (Math.atan(this.shares[1] / Math.sqrt(DISTANCE ** 2 - 1)) * 360) / Math.PI,
      box: null,
      near: (DISTANCE - 2) * this.radius,
      far: (DISTANCE + 2) * this.radius,
    };
  }
  /** The point at that depth that is seen at a place of the picture. */
  pointAt([across, up], depth) {
    const [x, y] = [across, up].map((part, axis) => ((2 * part - 1) * this.shares[axis]) / this.scale(depth));
    return this.center.map(
      (part, axis) => part + this.radius * (x * this.right[axis] + y * this.up[axis] + depth * this.towards[axis]),
    );
  }
}

/** The colours of what is `seen`, each with its `index` among the inks, as they look at their distance. */
function faded({ colors, isOne }, seen) {
  return Uint8Array.from({ length: 3 * seen.length }, (_, at) => {
    const { index, nearness } = seen[Math.floor(at / 3)];
    const fog = THICKEST_FOG * (1 - nearness);
    return Math.floor(colors[(isOne ? 0 : 3 * index) + (at % 3)] * (1 - fog) + FOG[at % 3] * fog + 0.5);
  });
}
