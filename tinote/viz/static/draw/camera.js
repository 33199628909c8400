// Vectors, cameras in space and colours, for pages and for what runs in them.

const add = (a, b) => a.map((value, at) => value + b[at]);
const minus = (a, b) => a.map((value, at) => value - b[at]);
const times = (a, factor) => a.map((value) => value * factor);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(...a);
const unit = (a) => times(a, 1 / (norm(a) || 1));
const AXES = [0, 1, 2];

/** "#rrggbb" as three numbers up to 255. */
const partsOf = (css) => [1, 3, 5].map((at) => parseInt(css.slice(at, at + 2), 16));

/** Unit vectors of a camera: to the right, upwards, and backwards to where it stands. */
function axes(eye) {
  const towards = unit(minus(eye.position, eye.target));
  let right = cross(eye.up, towards);
  if (!(norm(right) > 1e-6 * norm(eye.up))) {
    const least = towards.map(Math.abs).indexOf(Math.min(...towards.map(Math.abs)));
    right = cross(
      [0, 1, 2].map((at) => (at === least ? 1 : 0)),
      towards,
    );
  }
  right = unit(right);
  return [right, cross(towards, right), towards];
}

/** The matrices of a camera, column after column: space to view, view to clip coordinates. */
function matrices(eye, aspect) {
  const [right, up, towards] = axes(eye);
  const view = [];
  for (let at = 0; at < 3; at += 1) view.push(right[at], up[at], towards[at], 0);
  view.push(-dot(right, eye.position), -dot(up, eye.position), -dot(towards, eye.position), 1);
  const clip = new Array(16).fill(0);
  const depth = eye.far - eye.near;
  if (eye.box) {
    const [left, side, bottom, top] = eye.box;
    clip[0] = 2 / (side - left);
    clip[5] = 2 / (top - bottom);
    clip[10] = -2 / depth;
    clip[12] = -(side + left) / (side - left);
    clip[13] = -(top + bottom) / (top - bottom);
    clip[14] = -(eye.far + eye.near) / depth;
    clip[15] = 1;
  } else {
    const scale = 1 / Math.tan((eye.field_of_view * Math.PI) / 360);
    clip[0] = scale / aspect;
    clip[5] = scale;
    clip[10] = -(eye.far + eye.near) / depth;
    clip[11] = -1;
    clip[14] = (-2 * eye.far * eye.near) / depth;
  }
  return { view, clip };
}

/** Where a camera sees points in a picture of that size, as column and row; null for what is not in front of it. */
function projector(eye, width, height) {
  const { view, clip } = matrices(eye, width / height);
  const by = (matrix, point) =>
    [0, 1, 2, 3].map((row) => AXES.reduce((sum, at) => sum + matrix[4 * at + row] * point[at], matrix[12 + row]));
  return (point) => {
    const at = by(view, point);
    if (-at[2] <= eye.near) return null;
    const [x, y, , w] = by(clip, at);
    return [(0.5 + (0.5 * x) / w) * width, (0.5 - (0.5 * y) / w) * height];
  };
}
