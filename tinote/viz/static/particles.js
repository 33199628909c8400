// Particles as small discs, painted into the pixels of a canvas.

const HIDDEN = 0xffff;
const PHASES = 4; // Discs are prepared at this many positions within a pixel, so that slow ones do not jump.

/** "#rrggbb" as the bytes of an opaque pixel. */
function packed(css) {
  const value = parseInt(css.slice(1), 16);
  return 0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
}

/**
 * For each position within a pixel, the pixels that a disc covers: `whole` as offsets into a picture `width` pixels
 * wide, `edge` as offsets and coverage (0…256) in turn, and all of them as dx, dy and coverage in turn, for discs over
 * the picture's edge.
 */
function stamps(radius, width) {
  const reach = Math.ceil(radius + 1);
  const discs = [];
  for (let phase = 0; phase < PHASES * PHASES; phase += 1) {
    const cx = ((phase % PHASES) + 0.5) / PHASES;
    const cy = (Math.floor(phase / PHASES) + 0.5) / PHASES;
    const whole = [];
    const edge = [];
    const all = [];
    for (let dy = -reach; dy <= reach; dy += 1) {
      for (let dx = -reach; dx <= reach; dx += 1) {
        const cover = Math.round(256 * Math.min(1, radius + 0.5 - Math.hypot(dx + 0.5 - cx, dy + 0.5 - cy)));
        if (cover < 6) continue;
        all.push(dx, dy, cover);
        if (cover === 256) whole.push(dy * width + dx);
        else edge.push(dy * width + dx, cover);
      }
    }
    discs.push({ whole: Int32Array.from(whole), edge: Int32Array.from(edge), all: Int32Array.from(all) });
  }
  return { reach, discs };
}

/**
 * `below` with `cover`/256 of `above` over it; both colours as packed bytes 0xAABBGGRR, two of them computed at a
 * time.
 */
function blend(below, above, cover) {
  const rest = 256 - cover;
  const redBlue = (((below & 0xff00ff) * rest + (above & 0xff00ff) * cover) >>> 8) & 0xff00ff;
  const green = (((below & 0xff00) * rest + (above & 0xff00) * cover) >>> 8) & 0xff00;
  return 0xff000000 | redBlue | green;
}

/**
 * Paint discs into `pixels` (packed RGBA, width × height). `positions` holds 16-bit fractions, x to the right and y
 * up; `color` is that of all, packed, or `colors` has three bytes a particle.
 */
function splat(pixels, width, height, positions, { reach, discs }, color, colors) {
  const toX = width / (HIDDEN - 1);
  const toY = height / (HIDDEN - 1);
  const count = positions.length >> 1;
  for (let index = 0; index < count; index += 1) {
    const u = positions[2 * index];
    if (u === HIDDEN) continue;
    const x = u * toX;
    const y = height - positions[2 * index + 1] * toY;
    const column = Math.floor(x);
    const row = Math.floor(y);
    const disc = discs[(((y - row) * PHASES) | 0) * PHASES + (((x - column) * PHASES) | 0)];
    const ink = colors
      ? 0xff000000 | (colors[3 * index + 2] << 16) | (colors[3 * index + 1] << 8) | colors[3 * index]
      : color;
    if (column >= reach && row >= reach && column < width - reach && row < height - reach) {
      const at = row * width + column;
      const { whole, edge } = disc;
      for (let part = 0; part < whole.length; part += 1) pixels[at + whole[part]] = ink;
      for (let part = 0; part < edge.length; part += 2) {
        const place = at + edge[part];
        pixels[place] = blend(pixels[place], ink, edge[part + 1]);
      }
    } else {
      const { all } = disc;
      for (let part = 0; part < all.length; part += 3) {
        const px = column + all[part];
        const py = row + all[part + 1];
        if (px < 0 || py < 0 || px >= width || py >= height) continue;
        pixels[py * width + px] = blend(pixels[py * width + px], ink, all[part + 2]);
      }
    }
  }
}

/**
 * Paint a picture of discs or of a density into `pixels`: each has `cover`/255 of `color`, packed, over what is there,
 * or of its own colour, if `colors` has three bytes a pixel.
 */
function layOver(pixels, cover, color, colors) {
  for (let at = 0; at < cover.length; at += 1) {
    if (!cover[at]) continue;
    const ink = colors ? 0xff000000 | (colors[3 * at + 2] << 16) | (colors[3 * at + 1] << 8) | colors[3 * at] : color;
    pixels[at] = blend(pixels[at], ink, (cover[at] * 257) >> 8);
  }
}

/** The bytes of a DataView as an array of `Kind`, copied, since a message's parts may lie at odd places. */
function copied(view, Kind) {
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/** Draw lines, given by fractions from the bottom left, over what `context`'s canvas shows. */
function drawEdges(context, edges, color, scale) {
  const { width, height } = context.canvas;
  context.strokeStyle = color;
  context.lineWidth = 0.75 * scale;
  context.beginPath();
  for (const [x0, y0, x1, y1] of edges) {
    context.moveTo(x0 * width, (1 - y0) * height);
    context.lineTo(x1 * width, (1 - y1) * height);
  }
  context.stroke();
}

/**
 * Whether one of the particles, at 16-bit fractions of a stage of `width` × `height` pixels, is within `reach` of
 * where the pointer is.
 */
function isNear(event, positions, width, height, reach) {
  const box = event.currentTarget.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * width;
  const y = (1 - (event.clientY - box.top) / box.height) * height;
  for (let at = 0; at < positions.length; at += 2) {
    const across = (positions[at] / (HIDDEN - 1)) * width - x;
    const up = (positions[at + 1] / (HIDDEN - 1)) * height - y;
    if (across * across + up * up <= reach * reach) return true;
  }
  return false;
}

/** Let the pointer, where a press `turns`, and the arrow keys turn the camera of `model`. */
function turnCamera(model, canvas, turns) {
  canvas.classList.add("tinote-turnable");
  canvas.tabIndex = 0;
  const drag = model.get("can_point") ? "Drag beside the particles, drag with Shift," : "Drag";
  canvas.title = `${drag} or press the arrow keys to turn`;
  const turn = (around, above) => say(model, { kind: "turn", by: [around, above] });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || held || !turns(event)) return;
    held = { id: event.pointerId, x: event.clientX, y: event.clientY };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    const width = canvas.getBoundingClientRect().width;
    turn((-180 * (event.clientX - held.x)) / width, (180 * (event.clientY - held.y)) / width);
    held = { id: event.pointerId, x: event.clientX, y: event.clientY };
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, (event) => {
      if (held?.id === event.pointerId) held = null;
    });
  const keys = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, -5], ArrowDown: [0, 5] };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    turn(...keys[event.key]);
  });
}

export default {
  render({ model, el }) {
    const canvas = make("canvas", { class: "tinote-stage", role: "img" });
    const scale = fitCanvas(canvas, model.get("width"), model.get("height"));
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const prepare = () => stamps(model.get("radius") * scale, canvas.width);
    let discs = prepare();
    const own = model.get("colors").byteLength ? copied(model.get("colors"), Uint8Array) : null;
    let last = null;
    // A cover has a pixel for each CSS pixel, and is enlarged where the screen has more.
    const coarse = document.createElement("canvas");
    [coarse.width, coarse.height] = [model.get("width"), model.get("height")];
    const coarseContext = coarse.getContext("2d");
    let coarseImage = null;
    const paintCover = (paper, color) => {
      coarseImage ??= coarseContext.createImageData(coarse.width, coarse.height);
      const coarsePixels = new Uint32Array(coarseImage.data.buffer);
      coarsePixels.fill(paper);
      layOver(coarsePixels, last.cover, color, last.colors);
      coarseContext.putImageData(coarseImage, 0, 0);
      context.drawImage(coarse, 0, 0, canvas.width, canvas.height);
    };
    const paint = () => {
      const paper = packed(model.get("background") || (isDark(el) ? "#14181d" : "#ffffff"));
      const color = packed(model.get("color") || "#000000");
      if (last?.cover) paintCover(paper, color);
      else paintDiscs(paper, color);
      if (last?.edges) drawEdges(context, last.edges, isDark(el) ? "#5d6672" : "#a6abb3", scale);
    };
    const paintDiscs = (paper, color) => {
      pixels.fill(paper);
      if (last) splat(pixels, canvas.width, canvas.height, last.positions, discs, color, last.colors);
      context.putImageData(image, 0, 0);
    };
    const show = (message, [positions, colors]) => {
      const cover = message.cover ? copied(positions, Uint8Array) : null;
      last = {
        cover,
        edges: message.edges,
        positions: cover ? null : copied(positions, Uint16Array),
        colors: colors.byteLength ? copied(colors, Uint8Array) : cover ? null : own,
      };
      paint();
      const words = [counted(message.count, "particle", "particles")];
      if (message.outside) words.push(`${message.outside.toLocaleString("en")} outside`);
      canvas.setAttribute("aria-label", `${model.get("label")}: ${words.join(", ")}`);
      return words;
    };
    const restyled = () => {
      discs = prepare();
      paint();
    };
    const inSpace = model.get("in_space");
    const takes = (event) =>
      !inSpace ||
      (!event.shiftKey &&
        last?.positions &&
        isNear(
          event,
          last.positions,
          model.get("width"),
          model.get("height"),
          Math.max(2 * model.get("radius"), model.get("reach")),
        ));
    if (inSpace) turnCamera(model, canvas, (event) => !model.get("can_point") || !takes(event));
    const looks = ["change:radius", "change:color", "change:background"];
    for (const event of looks) model.on(event, restyled);
    const dispose = simulationView({ model, el, stage: canvas, show, repaint: paint, takes });
    return () => {
      for (const event of looks) model.off(event, restyled);
      dispose();
    };
  },
};
