// Scenes in space: drawn by WebGL through three.js, in the same light as `space/rasterise.py` draws them.

const SHARED = Symbol.for("tinote.space"); // What all views of a page share: three.js, and one renderer.
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

/** Whether the page can draw by WebGL, and whether a graphics card does. */
function graphics() {
  const shared = (globalThis[SHARED] ??= {});
  if (!shared.card?.there) shared.card = lookForCard(); // What is not there may come: a driver is started again.
  return shared.card;
}

function lookForCard() {
  const context = document.createElement("canvas").getContext("webgl2");
  if (!context) return { there: false, fast: false };
  const info = context.getExtension("WEBGL_debug_renderer_info");
  const name = String(context.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : context.RENDERER));
  return { there: true, fast: !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name) };
}

/**
 * three.js, for all views of the page. The first of their kernels that answers sends it; those of other views may be
 * busy, or gone.
 */
function library(model) {
  const shared = (globalThis[SHARED] ??= {});
  shared.loaded ??= new Promise((resolve, reject) => {
    shared.settle = { resolve, reject };
  });
  if (!shared.isLoading) {
    const receive = (message, buffers) => {
      if (message.kind !== "library") return;
      model.off("msg:custom", receive);
      if (shared.isLoading) return;
      shared.isLoading = true;
      imported(buffers[0]).then(shared.settle.resolve, (error) => {
        shared.settle.reject(error);
        shared.isLoading = false;
        shared.loaded = undefined; // The next view asks for it again.
      });
    };
    model.on("msg:custom", receive);
    say(model, { kind: "library" });
  }
  return shared.loaded;
}

async function imported(source) {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    return await import(/* webpackIgnore: true */ url);
  } finally {
    URL.revokeObjectURL(url);
  }
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
    this.space = null;
    this.times = []; // That the first frames took.
    this.forced = model.get("renderer") === "page";
    this.onLost = () => this.giveUp("lost");
    this.onRestored = () => this.begin();
    if (model.get("renderer") === "kernel") return;
    const card = graphics();
    if (!card.there && this.forced) this.reason = REASONS.missing;
    if (!card.there || !(card.fast || this.forced)) return;
    library(model).then(
      (three) => this.open(three),
      () => this.giveUp("failed"),
    );
  }

  get draws() {
    return this.drawer !== null;
  }

  open(three) {
    if (this.closed) return;
    const shared = globalThis[SHARED];
    try {
      // A browser keeps few contexts, and loses the oldest: there is one, whose picture is copied to each view.
      shared.renderer ??= new three.WebGLRenderer({ antialias: true, alpha: false });
    } catch {
      this.giveUp("failed");
      return;
    }
    this.space = { three, renderer: shared.renderer };
    const { domElement } = shared.renderer;
    // three.js listens as well, and earlier: when a context is restored, it is ready.
    domElement.addEventListener("webglcontextlost", this.onLost);
    domElement.addEventListener("webglcontextrestored", this.onRestored);
    if (this.isLost()) this.giveUp("lost");
    else this.begin();
  }

  begin() {
    this.drawer = sceneDrawer(this.space);
    this.reason = "";
    this.changed();
  }

  isLost() {
    return this.space.renderer.getContext().isContextLost();
  }

  giveUp(why) {
    if (this.closed) return;
    this.drawer?.dispose();
    this.drawer = null;
    if (why === "slow") this.close();
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
    if (this.isLost()) {
      this.giveUp("lost"); // The event that says so comes later.
      return;
    }
    const begin = performance.now();
    this.drawer.paint(context, eye, top, bottom);
    if (this.forced || this.times.length === TRIED) return;
    context.getImageData(0, 0, 1, 1); // Waits until it is drawn.
    this.times.push(performance.now() - begin);
    if (this.times.length === TRIED && this.times.sort((a, b) => a - b)[TRIED >> 1] > SLOW) this.giveUp("slow");
  }

  close() {
    this.closed = true;
    this.drawer?.dispose();
    this.drawer = null;
    this.space?.renderer.domElement.removeEventListener("webglcontextlost", this.onLost);
    this.space?.renderer.domElement.removeEventListener("webglcontextrestored", this.onRestored);
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
    vertex: `in vec3 position;
out float height;
void main() { height = 0.5 + 0.5 * position.y; gl_Position = vec4(position.xy, 0.0, 1.0); }`,
    fragment: `precision highp float;
uniform vec3 top, bottom;
in float height;
out vec4 color;
void main() { color = vec4(mix(bottom, top, height), 1.0); }`,
  },
  spheres: {
    vertex: `${HEAD}
in vec3 position;
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
  corner = position.xy * (1.0 + unit / wide);
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
    vertex: `${HEAD}
in vec3 position;
in vec4 begin, end;
in vec3 beginInk, endInk;
uniform float width, near;
out vec3 base;
void main() {
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

/** What draws scenes on canvases with the `three` and the `renderer` of a page. Keeps what a scene has sent so far. */
function sceneDrawer({ three, renderer }) {
  const parts = new Map(); // Arrays by their numbers.
  const shown = []; // For each item, what three.js draws.
  const scene = new three.Scene();
  const camera = new three.Camera();
  const common = { view: { value: null }, clip: { value: null }, pixels: { value: null } };
  const light = {
    sky: { value: null },
    ground: { value: null },
    upwards: { value: null },
    lamps: { value: null },
    lamplight: { value: null },
    lampCount: { value: 0 },
  };
  let described = null;

  const material = (kind, uniforms, defines = {}, more = {}) =>
    new three.RawShaderMaterial({
      glslVersion: three.GLSL3,
      vertexShader: SHADERS[kind].vertex,
      fragmentShader: SHADERS[kind].fragment,
      side: three.DoubleSide,
      uniforms,
      defines,
      ...more,
    });
  const solid = (geometry, stuff) => {
    const found = new three.Mesh(geometry, stuff);
    found.frustumCulled = false;
    scene.add(found);
    return found;
  };
  const square = (geometry) => {
    const corners = new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]);
    geometry.setAttribute("position", new three.BufferAttribute(corners, 3));
    geometry.setIndex([0, 1, 2, 0, 2, 3]);
    return geometry;
  };
  const paper = solid(
    square(new three.BufferGeometry()),
    material("paper", { top: { value: null }, bottom: { value: null } }, {}, { depthTest: false, depthWrite: false }),
  );
  paper.renderOrder = -1;

  const dispose = (at) => {
    const found = shown[at];
    if (!found) return;
    scene.remove(found.solid);
    found.solid.geometry.dispose();
    found.solid.material.dispose();
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
  /** An attribute of `geometry`, whose array is put in place of the one before where that fits. */
  const put = (geometry, name, array, size, normalized, instanced) => {
    const known = geometry.getAttribute(name);
    if (known && known.array.length === array.length) {
      known.array.set(array);
      known.needsUpdate = true;
    } else {
      const Kind = instanced ? three.InstancedBufferAttribute : three.BufferAttribute;
      geometry.setAttribute(name, new Kind(array, size, normalized));
    }
  };
  /** Bring what is drawn for an item up to date with its description. */
  const update = (at, item) => {
    const copies = item.transforms !== undefined;
    const like = `${item.kind} ${item.count} ${item.pairs ?? ""} ${item.triangles ?? ""} ${copies} ${item.transforms}`;
    if (shown[at]?.like !== like) dispose(at);
    if (!shown[at]) {
      const uniforms = { ...common, low: { value: null }, high: { value: null } };
      if (item.kind !== "lines") Object.assign(uniforms, light);
      let geometry;
      if (item.kind === "mesh") {
        geometry = copies ? new three.InstancedBufferGeometry() : new three.BufferGeometry();
        geometry.setIndex(new three.BufferAttribute(new Uint32Array(parts.get(item.triangles)), 1));
        uniforms.sides = { value: item.two_sided ? 2 : 1 };
        if (copies) {
          const all = new Float32Array(parts.get(item.transforms));
          geometry.instanceCount = all.length / 16;
          ["first", "second", "third", "fourth"].forEach((name, column) => {
            const own = new Float32Array(all.length / 4);
            for (let n = 0; n < own.length; n += 1) own[n] = all[16 * Math.floor(n / 4) + 4 * column + (n % 4)];
            geometry.setAttribute(name, new three.InstancedBufferAttribute(own, 4));
          });
        }
      } else {
        geometry = square(new three.InstancedBufferGeometry());
        if (item.kind === "spheres") uniforms.inPixels = { value: item.in_pixels };
        else Object.assign(uniforms, { width: { value: item.width }, near: { value: 0 } });
      }
      const more = item.kind === "spheres" ? { alphaToCoverage: true } : {};
      const stuff = material(item.kind, uniforms, copies ? { COPIES: 1 } : {}, more);
      shown[at] = { like, solid: solid(geometry, stuff), has: {} };
    }
    const { solid: found, has } = shown[at];
    const { geometry } = found;
    const { uniforms } = found.material;
    uniforms.low.value = item.low;
    uniforms.high.value = item.high;
    const news = (name) => {
      if (has[name] === item[name]) return false;
      has[name] = item[name];
      return true;
    };
    if (item.kind === "spheres") {
      geometry.instanceCount = item.count;
      if (news("positions")) put(geometry, "center", new Uint16Array(parts.get(item.positions)), 4, true, true);
      if (news("colors")) put(geometry, "ink", inks(item), 3, true, true);
      if (news("radii")) {
        const radii = new Float32Array(parts.get(item.radii));
        put(
          geometry,
          "radius",
          radii.length === item.count ? radii : new Float32Array(item.count).fill(radii[0]),
          1,
          false,
          true,
        );
      }
    } else if (item.kind === "mesh") {
      uniforms.sides.value = item.two_sided ? 2 : 1;
      if (news("positions")) put(geometry, "position", new Uint16Array(parts.get(item.positions)), 4, true, false);
      if (news("normals")) {
        const normals = new Int8Array(parts.get(item.normals));
        put(geometry, "across", normals, 4, true, false);
      }
      if (news("colors")) put(geometry, "ink", inks(item), 3, true, false);
    } else {
      const pairs = new Int32Array(parts.get(item.pairs));
      uniforms.width.value = item.width;
      geometry.instanceCount = pairs.length / 2;
      const ends = (source, size, offset) => {
        const own = new source.constructor((pairs.length / 2) * size);
        for (let n = 0; n < pairs.length / 2; n += 1)
          for (let k = 0; k < size; k += 1) own[n * size + k] = source[pairs[2 * n + offset] * size + k];
        return own;
      };
      if (news("positions")) {
        const positions = new Uint16Array(parts.get(item.positions));
        put(geometry, "begin", ends(positions, 4, 0), 4, true, true);
        put(geometry, "end", ends(positions, 4, 1), 4, true, true);
      }
      if (news("colors")) {
        const colors = inks(item);
        put(geometry, "beginInk", ends(colors, 3, 0), 3, true, true);
        put(geometry, "endInk", ends(colors, 3, 1), 3, true, true);
      }
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
    light.sky.value = lighting.sky;
    light.ground.value = lighting.ground;
    light.upwards.value = turn(unit(eye.up));
    light.lamps.value = fill(places);
    light.lamplight.value = fill(colors);
    light.lampCount.value = Math.min(places.length, MOST_LIGHTS);
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
      described.items.forEach((item, at) => update(at, item));
      for (let at = described.items.length; at < shown.length; at += 1) dispose(at);
      const { view, clip } = matrices(eye, width / height);
      common.view.value = view;
      common.clip.value = clip;
      common.pixels.value = [width, height];
      for (const found of shown)
        if (found?.solid.material.uniforms.near) found.solid.material.uniforms.near.value = eye.near;
      shine(described.lighting, eye);
      paper.material.uniforms.top.value = fractions(top);
      paper.material.uniforms.bottom.value = fractions(bottom);
      const { domElement } = renderer;
      if (domElement.width !== width || domElement.height !== height) renderer.setSize(width, height, false);
      renderer.render(scene, camera);
      context.drawImage(domElement, 0, 0);
    },
    dispose() {
      shown.forEach((_, at) => dispose(at));
      paper.geometry.dispose();
      paper.material.dispose();
    },
  };
}
