// Scenes in space: drawn by WebGL, in the same light as `space/rasterise.py` draws them.

const SHARED = Symbol.for("tinote.space"); // What all views of a page share: one context, and its programs.
const MOST_LIGHTS = 8;
const SLOW = 80; // Milliseconds that a frame takes where the page should rather be sent pictures.
const TRIED = 6; // Frames that are timed.
const ARRAYS = ["positions", "normals", "colors", "radii", "pairs", "triangles", "transforms"]; // Of an item.
const REASONS = {
  missing: "drawn by the kernel: no WebGL here",
  failed: "drawn by the kernel: WebGL failed",
  lost: "drawn by the kernel: WebGL was lost",
  slow: "drawn by the kernel: WebGL is slow here",
};

/**
 * What the page draws scenes with: a context `gl`, null where WebGL is missing, the `programs` that it has compiled,
 * and whether it `isFast`, on a graphics card. A browser keeps few contexts, and loses the oldest: there is one, whose
 * picture is copied to each view.
 */
function graphics() {
  const shared = (globalThis[SHARED] ??= {});
  if (shared.gl) return shared; // What is not there may come: a driver is started again.
  const canvas = document.createElement("canvas");
  shared.gl = canvas.getContext("webgl2", { antialias: true, alpha: false });
  if (!shared.gl) return shared;
  const info = shared.gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(shared.gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : shared.gl.RENDERER));
  shared.isFast = !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
  shared.programs = new Map();
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // So that it comes back.
    shared.programs.clear();
  });
  return shared;
}

/**
 * Decides who draws the scenes of `model`: the page, where it has a graphics card or the model's `renderer` says so, or
 * the kernel, which does it until the page can, and again where WebGL fails, is too slow, or is lost. `changed()` is
 * called when `draws` or `reason` have changed: whether the page draws, and why it does not though it should.
 */
class PageDrawing {
  constructor(model, changed) {
    this.changed = changed;
    this.reason = "";
    this.drawer = null;
    this.times = []; // That the first frames took.
    this.forced = model.get("renderer") === "page";
    this.onLost = () => this.giveUp("lost");
    this.onRestored = () => this.begin();
    if (model.get("renderer") === "kernel") return;
    const { gl, isFast } = graphics();
    if (!gl && this.forced) this.reason = REASONS.missing;
    if (!gl || !(isFast || this.forced)) return;
    this.gl = gl;
    queueMicrotask(() => this.open()); // Then the view has what `changed` asks.
  }

  get draws() {
    return this.drawer !== null;
  }

  open() {
    if (this.closed) return;
    this.gl.canvas.addEventListener("webglcontextlost", this.onLost);
    this.gl.canvas.addEventListener("webglcontextrestored", this.onRestored);
    if (this.gl.isContextLost()) this.giveUp("lost");
    else this.begin();
  }

  begin() {
    this.drawer = sceneDrawer(graphics());
    this.reason = "";
    this.changed();
  }

  giveUp(why) {
    if (this.closed) return;
    this.drawer?.dispose();
    this.drawer = null;
    if (why !== "lost") this.close();
    this.reason = REASONS[why];
    this.changed(); // The kernel sends pictures from now on.
  }

  /** Take a scene and the arrays that come with it, of a frame that may not be painted. */
  keep(scene, buffers) {
    this.drawer?.keep(scene, buffers);
  }

  /** Paint the last scene on a 2D context, as `eye` sees it, over colours from `top` to `bottom`. */
  paint(context, eye, top, bottom) {
    if (!this.drawer) return;
    if (this.gl.isContextLost()) {
      this.giveUp("lost"); // The event that says so comes later.
      return;
    }
    const begin = performance.now();
    try {
      this.drawer.paint(context, eye, top, bottom);
    } catch (error) {
      console.warn(error);
      this.giveUp("failed");
      return;
    }
    if (this.forced || this.times.length === TRIED) return;
    context.getImageData(0, 0, 1, 1); // Waits until it is drawn.
    this.times.push(performance.now() - begin);
    if (this.times.length === TRIED && this.times.sort((a, b) => a - b)[TRIED >> 1] > SLOW) this.giveUp("slow");
  }

  close() {
    this.closed = true;
    this.drawer?.dispose();
    this.drawer = null;
    this.gl?.canvas.removeEventListener("webglcontextlost", this.onLost);
    this.gl?.canvas.removeEventListener("webglcontextrestored", this.onRestored);
  }
}

const HEAD = `
precision highp float;
precision highp int;
uniform mat4 view, clip;
uniform vec3 low, high;
uniform vec2 pixels; // Of the picture.
vec3 placed(vec4 packed) { return low + packed.xyz * (high - low); }
float share(vec4 at) { return clip[3][3] == 1.0 ? 1.0 : -at.z; } // What a width shrinks by at a point of the view.
`;
const CORNER = `
vec2 cornerOfSquare() { return 2.0 * vec2(gl_VertexID & 1, gl_VertexID >> 1) - 1.0; } // Of a strip of two triangles.
`;
const LIGHT = `
uniform vec3 sky, ground, upwards;
uniform vec3 lamps[${MOST_LIGHTS}];
uniform vec3 lamplight[${MOST_LIGHTS}];
uniform int lampCount;
uniform mat4 clip;
vec3 lit(vec3 base, vec3 at, vec3 normal) {
  vec3 color = base * mix(ground, sky, 0.5 + 0.5 * dot(normal, upwards));
  vec3 eye = clip[3][3] == 1.0 ? vec3(0.0, 0.0, 1.0) : normalize(-at);
  for (int n = 0; n < ${MOST_LIGHTS}; n += 1) {
    if (n >= lampCount) break;
    vec3 towards = normalize(lamps[n] - at);
    float cosine = dot(normal, towards);
    if (cosine > 0.0)
      color += lamplight[n] * (base * cosine + 0.10 * pow(max(dot(normal, normalize(towards + eye)), 0.0), 32.0));
  }
  return min(color, 1.0);
}
`;
const SHADERS = {
  paper: {
    vertex: `${CORNER}
out float height;
void main() {
  vec2 at = cornerOfSquare();
  height = 0.5 + 0.5 * at.y;
  gl_Position = vec4(at, 0.0, 1.0);
}`,
    fragment: `precision highp float;
uniform vec3 top, bottom;
in float height;
out vec4 color;
void main() { color = vec4(mix(bottom, top, height), 1.0); }`,
  },
  spheres: {
    vertex: `${HEAD}${CORNER}
in vec4 center;
in float radius;
in vec3 ink;
uniform bool inPixels;
out vec2 corner;
out vec3 middle, base;
out float wide;
void main() {
  vec4 at = view * vec4(placed(center), 1.0);
  float unit = 2.0 * share(at) / (clip[1][1] * pixels.y); // A pixel, in the units of the scene.
  wide = max(inPixels ? radius * unit : radius, 0.71 * unit);
  // A little larger than the sphere, for the softness of its edge.
  corner = cornerOfSquare() * (1.0 + unit / wide);
  middle = at.xyz;
  base = ink;
  bool shown = center.w > 0.5 && radius > 0.0;
  gl_Position = shown ? clip * vec4(at.xyz + vec3(corner * wide, 0.0), 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}`,
    fragment: `precision highp float;
precision highp int;
${LIGHT}
in vec2 corner;
in vec3 middle, base;
in float wide;
out vec4 color;
void main() {
  float away = length(corner);
  float cover = clamp((1.0 - away) / fwidth(away) + 0.5, 0.0, 1.0);
  if (cover <= 0.0) discard;
  vec3 normal = vec3(corner, sqrt(max(1.0 - away * away, 0.0)));
  normal = normalize(normal);
  vec3 at = middle + wide * normal;
  vec4 front = clip * vec4(at, 1.0);
  gl_FragDepth = 0.5 + 0.5 * front.z / front.w;
  color = vec4(lit(base, at, normal), cover);
}`,
  },
  mesh: {
    vertex: `${HEAD}
in vec4 position;
in vec3 across;
in vec3 ink;
#ifdef COPIES
in vec4 first, second, third, fourth;
#endif
out vec3 at, normal, base;
out float hidden;
void main() {
  vec4 place = vec4(placed(position), 1.0);
  vec3 turned = across;
#ifdef COPIES
  mat4 copied = mat4(first, second, third, fourth);
  mat3 linear = mat3(copied);
  place = copied * place;
  vec3 a = linear[0], b = linear[1], c = linear[2];
  turned = mat3(cross(b, c), cross(c, a), cross(a, b)) * turned * sign(determinant(linear));
#endif
  vec4 seen = view * place;
  at = seen.xyz;
  normal = mat3(view) * turned;
  base = ink;
  hidden = 1.0 - position.w;
  gl_Position = clip * seen;
}`,
    fragment: `precision highp float;
precision highp int;
${LIGHT}
uniform int sides;
in vec3 at, normal, base;
in float hidden;
out vec4 color;
void main() {
  if (hidden > 0.0) discard;
  vec3 facing = normalize(normal);
  vec3 eye = clip[3][3] == 1.0 ? vec3(0.0, 0.0, 1.0) : -at;
  if (sides == 2 && dot(facing, eye) < 0.0) facing = -facing;
  color = vec4(lit(base, at, facing), 1.0);
}`,
  },
  lines: {
    vertex: `${HEAD}${CORNER}
in vec4 begin, end;
in vec3 beginInk, endInk;
uniform float width, near;
out vec3 base;
void main() {
  vec2 position = cornerOfSquare();
  vec4 a = view * vec4(placed(begin), 1.0), b = view * vec4(placed(end), 1.0);
  float hiddenA = step(-near, a.z), hiddenB = step(-near, b.z);
  vec4 kept = mix(a, b, (-near * 1.001 - a.z) / (b.z - a.z + 1e-20));
  bool none = begin.w < 0.5 || end.w < 0.5 || hiddenA + hiddenB > 1.5;
  if (hiddenA > 0.5) a = kept;
  if (hiddenB > 0.5) b = kept;
  vec4 from = clip * a, to = clip * b;
  vec2 along = (to.xy / to.w - from.xy / from.w) * pixels;
  along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
  vec2 sideways = vec2(-along.y, along.x);
  vec4 here = position.x < 0.0 ? from : to;
  here.xy += (along * position.x + sideways * position.y) * max(width, 1.0) / pixels * here.w;
  float depth = position.x < 0.0 ? a.z : b.z; // Nearer by half of the width, as a rod's front is.
  depth += max(width, 1.0) * share(position.x < 0.0 ? a : b) / (clip[1][1] * pixels.y);
  vec4 nearer = clip * vec4(0.0, 0.0, depth, 1.0);
  here.z = nearer.z / nearer.w * here.w;
  base = position.x < 0.0 ? beginInk : endInk;
  gl_Position = none ? vec4(2.0, 2.0, 2.0, 1.0) : here;
}`,
    fragment: `precision highp float;
in vec3 base;
out vec4 color;
void main() { color = vec4(base, 1.0); }`,
  },
};

/** "#rrggbb" as three numbers up to 1. */
const fractions = (css) => partsOf(css).map((part) => part / 255);

/** The numbers of the arrays that a scene is drawn of. */
function arraysOf({ items }) {
  return new Set(items.flatMap((item) => ARRAYS.map((name) => item[name]).filter((number) => number !== undefined)));
}

/** The program of a kind of item, with its active uniforms by name. Raises where it cannot be linked. */
function linked(gl, kind, defines) {
  const program = gl.createProgram();
  const { vertex, fragment } = SHADERS[kind];
  for (const [type, text] of [
    [gl.VERTEX_SHADER, defines + vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, `#version 300 es\n${text}`);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader); // Goes with the program.
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`WebGL: ${gl.getProgramInfoLog(program)}`);
  const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS);
  const uniforms = Array.from({ length: count }, (_, at) => {
    const { name, type } = gl.getActiveUniform(program, at);
    return [name.replace("[0]", ""), type, gl.getUniformLocation(program, name)];
  });
  return { program, uniforms };
}

/** Give the uniforms of a program their `values`, by name. */
function setUniforms(gl, { uniforms }, values) {
  for (const [name, type, place] of uniforms) {
    const value = values[name];
    if (type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place, false, value);
    else if (type === gl.FLOAT_VEC3) gl.uniform3fv(place, value);
    else if (type === gl.FLOAT_VEC2) gl.uniform2fv(place, value);
    else if (type === gl.FLOAT) gl.uniform1f(place, value);
    else gl.uniform1i(place, value);
  }
}

/** The number type of an array, as WebGL names it. */
function typeIn(gl, array) {
  if (array instanceof Float32Array) return gl.FLOAT;
  if (array instanceof Uint16Array) return gl.UNSIGNED_SHORT;
  return array instanceof Int8Array ? gl.BYTE : gl.UNSIGNED_BYTE;
}

/**
 * What draws scenes on canvases with the context `gl` of the page and its `programs`. Keeps what a scene has sent so
 * far.
 */
function sceneDrawer({ gl, programs }) {
  const parts = new Map(); // Arrays by their numbers.
  const shown = []; // For each item, its program, its buffers by name, and how much of it is drawn.
  let described = null;

  const programOf = (kind, defines = "") => {
    const key = kind + defines;
    if (!programs.has(key)) programs.set(key, linked(gl, kind, defines));
    return programs.get(key);
  };
  const dispose = (at) => {
    const found = shown[at];
    if (!found) return;
    gl.deleteVertexArray(found.layout);
    for (const buffer of found.buffers.values()) gl.deleteBuffer(buffer);
    shown[at] = undefined;
  };
  /** Colours of each of `count` things. */
  const inks = (item) => {
    const colors = new Uint8Array(parts.get(item.colors));
    if (item.colored) return colors;
    const all = new Uint8Array(3 * item.count);
    for (let at = 0; at < all.length; at += 1) all[at] = colors[at % 3];
    return all;
  };
  /** An attribute of `found`, of `size` numbers for each vertex, or for each `instanced` copy. */
  const put = (found, name, array, size, instanced) => {
    const isNew = !found.buffers.has(name);
    if (isNew) found.buffers.set(name, gl.createBuffer());
    gl.bindBuffer(gl.ARRAY_BUFFER, found.buffers.get(name));
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
    const place = gl.getAttribLocation(found.program.program, name);
    if (!isNew || place < 0) return;
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, typeIn(gl, array), !(array instanceof Float32Array), 0, 0);
    gl.vertexAttribDivisor(place, instanced ? 1 : 0);
  };
  /** What is there of an item before its arrays have come. */
  const begun = (item) => {
    const copies = item.transforms !== undefined;
    const found = { program: programOf(item.kind, copies ? "#define COPIES\n" : ""), buffers: new Map(), has: {} };
    found.layout = gl.createVertexArray();
    gl.bindVertexArray(found.layout);
    if (item.kind !== "mesh") return found;
    const triangles = new Uint32Array(parts.get(item.triangles));
    found.indices = triangles.length;
    found.buffers.set("triangles", gl.createBuffer());
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, found.buffers.get("triangles"));
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
    found.count = 1;
    if (copies) {
      const all = new Float32Array(parts.get(item.transforms));
      found.count = all.length / 16;
      ["first", "second", "third", "fourth"].forEach((name, column) => {
        const own = new Float32Array(all.length / 4);
        for (let n = 0; n < own.length; n += 1) own[n] = all[16 * Math.floor(n / 4) + 4 * column + (n % 4)];
        put(found, name, own, 4, true);
      });
    }
    return found;
  };
  /** Bring what is drawn for an item up to date with its description. */
  const update = (at, item) => {
    const { kind, count, pairs = "", triangles = "", transforms = "" } = item;
    const like = `${kind} ${count} ${pairs} ${triangles} ${transforms}`;
    if (shown[at]?.like !== like) dispose(at);
    shown[at] ??= { ...begun(item), like };
    const found = shown[at];
    gl.bindVertexArray(found.layout);
    const news = (name) => {
      if (found.has[name] === item[name]) return false;
      found.has[name] = item[name];
      return true;
    };
    if (kind === "spheres") {
      found.count = count;
      if (news("positions")) put(found, "center", new Uint16Array(parts.get(item.positions)), 4, true);
      if (news("colors")) put(found, "ink", inks(item), 3, true);
      if (news("radii")) {
        const radii = new Float32Array(parts.get(item.radii));
        put(found, "radius", radii.length === count ? radii : new Float32Array(count).fill(radii[0]), 1, true);
      }
    } else if (kind === "mesh") {
      if (news("positions")) put(found, "position", new Uint16Array(parts.get(item.positions)), 4, false);
      if (news("normals")) put(found, "across", new Int8Array(parts.get(item.normals)), 4, false);
      if (news("colors")) put(found, "ink", inks(item), 3, false);
    } else {
      const ends = new Int32Array(parts.get(item.pairs));
      found.count = ends.length / 2;
      const endsOf = (source, size, offset) => {
        const own = new source.constructor(found.count * size);
        for (let n = 0; n < found.count; n += 1)
          for (let k = 0; k < size; k += 1) own[n * size + k] = source[ends[2 * n + offset] * size + k];
        return own;
      };
      const putEnds = (names, source, size) =>
        names.forEach((name, offset) => put(found, name, endsOf(source, size, offset), size, true));
      if (news("positions")) putEnds(["begin", "end"], new Uint16Array(parts.get(item.positions)), 4);
      if (news("colors")) putEnds(["beginInk", "endInk"], inks(item), 3);
    }
  };
  /** The lights in view coordinates. */
  const shine = (lighting, eye) => {
    const [right, up, towards] = axes(eye);
    const turn = (vector) => [dot(right, vector), dot(up, vector), dot(towards, vector)];
    const distance = norm(minus(eye.position, eye.target));
    const places = lighting.lights.map(([place]) =>
      lighting.with_camera ? times(place, distance) : turn(minus(place, eye.position)),
    );
    const colors = lighting.lights.map(([, color]) => color);
    const fill = (vectors) => {
      const all = new Float32Array(3 * MOST_LIGHTS);
      all.set(vectors.slice(0, MOST_LIGHTS).flat());
      return all;
    };
    return {
      sky: lighting.sky,
      ground: lighting.ground,
      upwards: turn(unit(eye.up)),
      lamps: fill(places),
      lamplight: fill(colors),
      lampCount: Math.min(places.length, MOST_LIGHTS),
    };
  };
  return {
    /**
     * Take a description, and the arrays that come with it. One that was on its way when this drawer began names arrays
     * that went to another one: it is left out, and all of them follow.
     */
    keep(description, buffers) {
      description.parts.forEach((number, at) => {
        const view = buffers[at];
        parts.set(number, view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
      });
      const used = arraysOf(description);
      if ([...used].some((number) => !parts.has(number))) return;
      for (const number of [...parts.keys()]) if (!used.has(number)) parts.delete(number);
      described = description;
    },
    /** Paint the last scene on a 2D context, as `eye` sees it, over colours from `top` to `bottom`. */
    paint(context, eye, top, bottom) {
      if (!described) return;
      const { width, height } = context.canvas;
      const { canvas } = gl;
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
      gl.viewport(0, 0, width, height);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.disable(gl.DEPTH_TEST);
      const paper = programOf("paper");
      gl.useProgram(paper.program);
      gl.bindVertexArray(null);
      setUniforms(gl, paper, { top: fractions(top), bottom: fractions(bottom) });
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
      gl.enable(gl.DEPTH_TEST);
      gl.depthFunc(gl.LEQUAL);
      const common = { ...matrices(eye, width / height), pixels: [width, height], near: eye.near };
      Object.assign(common, shine(described.lighting, eye));
      described.items.forEach((item, at) => {
        update(at, item);
        const { program, indices, count } = shown[at];
        gl.useProgram(program.program);
        const { low, high, in_pixels: inPixels, two_sided: isTwoSided } = item;
        setUniforms(gl, program, { ...common, low, high, inPixels, width: item.width, sides: isTwoSided ? 2 : 1 });
        if (indices !== undefined) gl.drawElementsInstanced(gl.TRIANGLES, indices, gl.UNSIGNED_INT, 0, count);
        else {
          // The edge of a sphere is soft.
          if (item.kind === "spheres") gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
          gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
          gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
        }
      });
      for (let at = described.items.length; at < shown.length; at += 1) dispose(at);
      context.drawImage(canvas, 0, 0);
    },
    dispose() {
      shown.forEach((_, at) => dispose(at));
    },
  };
}
