// Particles as small discs, painted into the pixels of a canvas.

const PHASES = 4; // Discs are prepared at this many positions within a pixel, so that slow ones do not jump.

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
 * Paint discs into `pixels` (packed RGBA, width × height). `positions` holds 16-bit fractions, x to the right and y
 * up; `color` is that of all, packed, or `inks` has one for each.
 */
function splat({ pixels, width, height }, positions, { reach, discs }, color, inks) {
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
    const ink = inks ? inks[index] : color;
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
 * Paint discs one by one: each of its own radius in pixels, if `radii` has them; with halos, if they are `glowing`.
 */
function paintDiscs(target, positions, radius, radii, color, inks, glowing) {
  const { width, height, scale } = target;
  for (let index = 0; index < positions.length >> 1; index += 1) {
    const u = positions[2 * index];
    if (u === HIDDEN) continue;
    const own = (radii ? radii[index] : radius) * scale;
    if (!own) continue;
    const x = (u / (HIDDEN - 1)) * width;
    const y = (1 - positions[2 * index + 1] / (HIDDEN - 1)) * height;
    paintDisc(target, x, y, own, inks ? inks[index] : color, glowing);
  }
}

/** A picture of discs or of a density in `pixels`: each has `cover`/255 of `color`, packed. */
function uncovered(pixels, cover, color) {
  const ink = color & 0xffffff;
  for (let at = 0; at < cover.length; at += 1) pixels[at] = (cover[at] << 24) | ink;
}

/** Bits, eight to a byte, the highest first, as bytes that are 0 or 255. */
function bitsAsBytes(bits) {
  const bytes = new Uint8Array(8 * bits.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = -((bits[at >> 3] >> (7 - (at & 7))) & 1);
  return bytes;
}

/**
 * The number of the particle, of those at 16-bit fractions of a stage of a size, that is nearest to a place there, at
 * most `reach` pixels away; -1 where none is.
 */
function nearestParticle(positions, [across, up], [width, height], reach) {
  let [found, least] = [-1, reach];
  for (let at = 0; at < positions.length; at += 2) {
    if (positions[at] === HIDDEN) continue;
    const [x, y] = [positions[at] / (HIDDEN - 1), positions[at + 1] / (HIDDEN - 1)];
    const away = Math.hypot((x - across) * width, (y - up) * height);
    if (away <= least) [found, least] = [at / 2, away];
  }
  return found;
}

/** Let the pointer, where a press `turns`, and the arrow keys turn the camera of `model`. */
function turnCamera(model, canvas, turns) {
  canvas.classList.add("tinote-turnable");
  canvas.tabIndex = 0;
  const drag = model.get("can_point") ? "Drag next to the particles, drag with Shift," : "Drag";
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

export default laidOut(
  ({ model, el }) => {
    const canvas = make("canvas", { class: "tinote-stage", role: "img" });
    const context = canvas.getContext("2d");
    const bar = model.get("colorbar") ? colorBar(model) : null;
    let scale, image, target, discs, table, looks, marked, glowing, ownInks;
    const size = (wanted) => {
      scale = fitCanvas(canvas, model.get("width"), model.get("height"), wanted);
      image = context.createImageData(canvas.width, canvas.height);
      target = pixelsOf(image, scale);
    };
    size();
    const readLook = () => {
      discs = stamps(model.get("radius") * scale, canvas.width);
      table = colorTable(model);
      looks = model.get("marks");
      marked = Object.keys(looks).length > 0;
      glowing = model.get("glow");
      const own = model.get("colors").byteLength ? copied(model.get("colors"), Uint8Array) : null;
      ownInks = inksOf(own, own ? own.length / 3 : 0, table);
    };
    readLook();
    let last = null;
    let seen = null; // What of it is on the stage.
    let trail = []; // The places of the frames that a trail reaches back to,
    let pastTrail = null; // and those of a frame that is shown again.
    // A cover has a pixel for each CSS pixel, and is enlarged where the screen has more.
    const coarse = document.createElement("canvas");
    [coarse.width, coarse.height] = [model.get("width"), model.get("height")];
    const coarseContext = coarse.getContext("2d");
    let coarseImage = null;
    const paintCover = (color) => {
      coarseImage ??= coarseContext.createImageData(coarse.width, coarse.height);
      uncovered(new Uint32Array(coarseImage.data.buffer), last.cover, color);
      coarseContext.putImageData(coarseImage, 0, 0);
      if (last.bitmap) {
        coarseContext.globalCompositeOperation = "source-in"; // Its colours, as much as is covered.
        coarseContext.drawImage(last.bitmap, 0, 0);
        coarseContext.globalCompositeOperation = "source-over";
      }
      zoomOf(canvas).paint(context, coarse);
    };
    const paint = () => {
      const paper = model.get("background") || (isDark(el) ? "#14181d" : "#ffffff");
      const color = packed(model.get("color") || "#000000");
      const zoom = zoomOf(canvas);
      seen = last && {
        ...last,
        positions: zoom.codes(last.positions, HIDDEN - 1, HIDDEN),
        edges: zoom.fractions(last.edges),
        arrows: zoom.fractions(last.arrows),
      };
      if (last?.cover && !marked) {
        context.fillStyle = paper;
        context.fillRect(0, 0, canvas.width, canvas.height);
      } else {
        target.pixels.fill(packed(paper));
        if (last) paintMarked(color);
        context.putImageData(image, 0, 0);
      }
      if (last?.cover) paintCover(color);
      if (last?.box) paintBox(context, last.box, last.eye, paper, scale);
    };
    const paintMarked = (color) => {
      paintBelow(color);
      if (!last.cover) paintParticles(color);
      if (last.arrows && looks.arrows) paintArrows(target, seen.arrows, last.arrowInks, looks.arrows);
    };
    const paintBelow = (color) => {
      if (looks.trail) {
        const one = looks.trail.color ? packedParts(looks.trail.color) : color;
        const inks = looks.trail.color ? null : (last.trailInks ?? last.inks ?? ownInks);
        const rows = (pastTrail ?? trail).map((row) => zoomOf(canvas).fractions(row));
        paintTrails(target, rows, inks ? (index) => inks[index] : () => one, looks.trail, glowing);
      }
      if (last.edges && looks.edges) paintEdges(target, seen.edges, last.edgeInks, looks.edges);
    };
    const paintParticles = (color) => {
      const { positions, radii } = seen;
      const inks = last.inks ?? ownInks;
      if (radii || glowing) paintDiscs(target, positions, model.get("radius"), radii, color, inks, glowing);
      else splat(target, positions, discs, color, inks);
    };
    const keep = (message, buffers) => {
      if (!message.trail || !looks.trail) return;
      const [count, places] = [2 * message.count, copied(buffers[buffers.length - 2], Float32Array)];
      const rows = message.trail === "whole" ? [] : [...trail];
      for (let at = 0; at < places.length; at += count) rows.push(places.slice(at, at + count));
      trail = rows.slice(-looks.trail.length - 1);
    };
    const remember = (message, buffers) => {
      const parts = ownParts(buffers.slice(0, message.trail ? -2 : -1));
      const rows = trail;
      return { parts: [...parts, ...rows], show: () => shown(message, parts, rows) };
    };
    const show = (message, buffers) => shown(message, buffers, null);
    const shown = (message, buffers, rows) => {
      pastTrail = rows;
      const [, colors] = buffers;
      if (!message.cover || !colors.byteLength) return showDecoded(message, buffers, null);
      return createImageBitmap(new Blob([colors], { type: "image/jpeg" })).then(
        (bitmap) => () => showDecoded(message, buffers, bitmap),
      );
    };
    const showDecoded = (message, [positions, colors, ...more], bitmap) => {
      const part = Object.fromEntries((message.parts ?? []).map((name, at) => [name, more[at]]));
      const bytes = (name) => part[name] && copied(part[name], Uint8Array);
      const floats = (name) => part[name] && copied(part[name], Float32Array);
      const sent = message.cover ? copied(positions, Uint8Array) : null;
      const cover = message.cover === "bits" ? bitsAsBytes(sent) : sent;
      const rgb = !cover && colors.byteLength ? copied(colors, Uint8Array) : null;
      const [edges, arrows] = [floats("edges"), floats("arrows")];
      const inks = cover ? null : inksOf(bytes("codes") ?? rgb, positions.byteLength >> 2, table);
      last?.bitmap?.close();
      last = {
        cover,
        levels: cover ? null : (bytes("codes") ?? null),
        ends: [message.low, message.high],
        bitmap,
        box: message.box,
        eye: message.eye,
        positions: cover ? null : copied(positions, Uint16Array),
        inks,
        radii: floats("radii"),
        edges,
        edgeInks: inksOf(bytes("edges_inks"), edges?.length >> 2, table),
        arrows,
        arrowInks: inksOf(bytes("arrows_inks"), arrows?.length >> 2, table),
        trailInks: inksOf(bytes("trail_inks"), message.count, table),
      };
      if (bar && "low" in message) bar.show(message.low, message.high);
      paint();
      const words = [counted(message.count, "particle", "particles")];
      if (message.outside) words.push(`${message.outside.toLocaleString("en")} outside`);
      if ("longest" in message) words.push(`arrows up to ${numberText(message.longest)}`);
      if (message.strange) words.push(`${message.strange.toLocaleString("en")} not finite`);
      canvas.setAttribute("aria-label", `${model.get("label")}: ${words.join(", ")}`);
      return words;
    };
    const inSpace = model.get("in_space");
    const [width, height] = [model.get("width"), model.get("height")];
    const particleAt = (place) => {
      const reach = Math.max(2 * model.get("radius"), model.get("reach"));
      return nearestParticle(last?.positions ?? [], place, zoomOf(canvas).sides([width, height]), reach);
    };
    const read = (place) => {
      if (inSpace || last?.cover) return undefined; // The page has places of the picture, or not even these.
      const axes = model.get("axes_shown");
      const found = particleAt(place);
      if (found < 0) return axes.x ? placeText(axes, place, zoomOf(canvas).sides([width, height])) : "";
      const at = [0, 1].map((axis) => last.positions[2 * found + axis] / (HIDDEN - 1));
      const texts = [`particle ${found.toLocaleString("en")}`, placeText(axes, at, [4 * width, 4 * height])];
      const level = last.levels?.[found];
      if (level !== undefined)
        texts.push(`${model.get("color_label") || "value"} ${levelText(model, level, ...last.ends)}`);
      return texts.join(" · ");
    };
    const restyle = () => {
      readLook();
      bar?.renew();
      paint();
    };
    const takes = (event) => !inSpace || (!event.shiftKey && particleAt(placeOn(canvas, event)) >= 0);
    if (inSpace) turnCamera(model, canvas, (event) => !model.get("can_point") || !takes(event));
    const styles = ["radius", "color", "colors", "background", "table", "marks", "glow"];
    const unwatch = watchTraits(model, styles, restyle);
    pickOnClick(model, canvas);
    const dispose = simulationView({
      model,
      el,
      stage: canvas,
      bar,
      show,
      keep,
      remember,
      repaint: paint,
      resolve: (wanted) => {
        size(wanted);
        restyle();
      },
      takes,
      read,
      wait: inSpace ? REST : 0,
    });
    return () => {
      unwatch();
        last?.bitmap?.close();
      dispose();
    };
  },
  ["in_space"],
);
