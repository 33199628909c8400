// Picking in scenes: the thing at a place of the picture, as `viz/space/picking.py` finds it in a picture of numbers.

const REACH = 3; // A pointer so many pixels away picks a thing too, if nothing is nearer: lines are thin.
const PART = { spheres: "particle", lines: "line", mesh: "triangle" };

/**
 * What is seen of `things` at a place of a picture of that size, given as fractions from its bottom left: the `thing`
 * of this number, what it is and its `index`, the `copy` of a mesh, and the `position`; null where nothing is. What the
 * place is on goes before what it is beside, and what is nearer to the camera before what is behind.
 */
function pickedAt(things, eye, [width, height], [across, up]) {
  const [right, upwards, towards] = axes(eye);
  const scale = height / (2 * Math.tan((eye.field_of_view * Math.PI) / 360)); // Pixels at a distance of 1.
  const ray = [((across - 0.5) * width) / scale, ((up - 0.5) * height) / scale, 1];
  const seen = (x, y, z) => {
    const from = [x - eye.position[0], y - eye.position[1], z - eye.position[2]];
    return [dot(right, from), dot(upwards, from), -dot(towards, from)]; // The last is the depth.
  };
  let best = null;
  things.forEach(({ item, points, arrays }, thing) => {
    const offer = (index, [beside, depth], copy) => {
      if (!(beside <= REACH && depth > eye.near)) return;
      if (best && (beside > best.beside || (beside === best.beside && depth >= best.depth))) return;
      best = { thing, item, index, copy, beside, depth, isOne: points.length === 3 };
    };
    const vertices = [];
    for (let at = 0; at < points.length; at += 3) vertices.push([points[at], points[at + 1], points[at + 2]]);
    const { radii, pairs, triangles, transforms } = arrays;
    if (item.kind === "spheres")
      vertices.forEach((point, index) =>
        offer(index, ofSphere(ray, seen(...point), radii[radii.length > 1 ? index : 0], scale)),
      );
    else if (item.kind === "lines") {
      const ends = vertices.map((point) => seen(...point));
      for (let at = 0; at < pairs.length; at += 2)
        offer(at / 2, ofLine(ray, ends[pairs[at]], ends[pairs[at + 1]], item.width, scale, eye.near));
    } else
      for (let copy = 0; copy < (transforms ? transforms.length / 16 : 1); copy += 1) {
        const corners = vertices.map((point) => seen(...(transforms ? moved(transforms, 16 * copy, point) : point)));
        for (let at = 0; at < triangles.length; at += 3) {
          const depth = ofTriangle(ray, ...[0, 1, 2].map((one) => corners[triangles[at + one]]));
          offer(at / 3, [0, depth], transforms && copy);
        }
      }
  });
  if (!best) return null;
  const at = times(ray, best.depth);
  const position = AXES.map(
    (axis) => eye.position[axis] + right[axis] * at[0] + upwards[axis] * at[1] - towards[axis] * at[2],
  );
  return { ...best, position };
}

/** A point moved by a matrix, column after column, that begins at a place of an array. */
const moved = (matrices, from, [x, y, z]) =>
  AXES.map((row) => {
    const part = (column) => matrices[from + 4 * column + row];
    return part(0) * x + part(1) * y + part(2) * z + part(3);
  });

/** How many pixels beside a sphere a ray goes, and how deep it meets it, or comes next to it. */
function ofSphere(ray, center, radius, scale) {
  const [square, along] = [dot(ray, ray), dot(ray, center)];
  const depth = along / square;
  const away = norm(minus(center, times(ray, depth)));
  const reach = Math.max(radius, (0.71 * center[2]) / scale); // Not less than a pixel.
  if (away <= reach) return [0, depth - Math.sqrt(Math.max(radius * radius - away * away, 0) / square)];
  return [((away - reach) * scale) / depth, depth];
}

/** The same of a line between two points, which ends where the camera's near plane is. */
function ofLine(ray, begin, end, width, scale, near) {
  if (begin[2] > end[2]) [begin, end] = [end, begin];
  if (!(end[2] > near)) return [Infinity, 0];
  if (begin[2] < near) begin = add(begin, times(minus(end, begin), (near - begin[2]) / (end[2] - begin[2])));
  const placed = (point) => [(point[0] / point[2] - ray[0]) * scale, (point[1] / point[2] - ray[1]) * scale];
  const [from, to] = [placed(begin), placed(end)];
  const along = minus(to, from);
  const length = dot2(along, along);
  const part = length ? Math.min(Math.max(-dot2(from, along) / length, 0), 1) : 0;
  const away = norm(add(from, times(along, part)));
  // Of what lies evenly in the picture, one over the depth does.
  const depth = 1 / ((1 - part) / begin[2] + part / end[2]);
  return [Math.max(away - Math.max(width, 1) / 2, 0), depth];
}
const dot2 = (a, b) => a[0] * b[0] + a[1] * b[1];

/** How deep a ray meets a triangle; no number where it does not. */
function ofTriangle(ray, a, b, c) {
  const [u, v] = [minus(b, a), minus(c, a)];
  const across = cross(ray, v);
  const size = dot(u, across);
  const first = -dot(a, across) / size;
  const turned = cross(times(a, -1), u);
  const second = dot(ray, turned) / size;
  return first >= 0 && second >= 0 && first + second <= 1 ? dot(v, turned) / size : NaN;
}

/** What a view with `count` things says of what was picked. */
function pickedText({ item, index, copy, thing, isOne, position }, name, count) {
  let found = `${PART[item.kind]} ${index.toLocaleString("en")}`;
  if (copy !== undefined) found += ` of copy ${copy}`;
  if (name) found = isOne ? name : `${found} of ${name}`;
  else if (count > 1) found += ` of thing ${thing}`;
  return `${found} at (${position.map((part) => numberText(part, 3)).join(", ")})`;
}
