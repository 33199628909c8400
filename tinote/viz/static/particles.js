// Particles as small discs, painted into the pixels of a canvas.

const HIDDEN = 0xffff;
const PHASES = 4; // Discs are prepared at this many positions within a pixel, so that slow ones do not jump.

function channels(css) {
  const value = parseInt(css.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** For each position within a pixel, the pixels that a disc covers and by how much: [dx, dy, coverage 0…256, …]. */
function stamps(radius) {
  const reach = Math.ceil(radius + 1);
  const all = [];
  for (let phase = 0; phase < PHASES * PHASES; phase += 1) {
    const cx = ((phase % PHASES) + 0.5) / PHASES;
    const cy = (Math.floor(phase / PHASES) + 0.5) / PHASES;
    const stamp = [];
    for (let dy = -reach; dy <= reach; dy += 1) {
      for (let dx = -reach; dx <= reach; dx += 1) {
        const cover = Math.min(1, radius + 0.5 - Math.hypot(dx + 0.5 - cx, dy + 0.5 - cy));
        if (cover > 0.02) stamp.push(dx, dy, Math.round(cover * 256));
      }
    }
    all.push(Int32Array.from(stamp));
  }
  return all;
}

/** Paint discs into `pixels` (RGBA bytes, width × height): `positions` as 16-bit fractions, `rgb` one colour or three bytes a particle. */
function splat(pixels, width, height, positions, count, discs, rgb, each) {
  for (let index = 0; index < count; index += 1) {
    const u = positions.getUint16(4 * index, true);
    if (u === HIDDEN) continue;
    const x = (u / (HIDDEN - 1)) * width;
    const y = height - (positions.getUint16(4 * index + 2, true) / (HIDDEN - 1)) * height;
    const column = Math.floor(x);
    const row = Math.floor(y);
    const stamp = discs[Math.floor((y - row) * PHASES) * PHASES + Math.floor((x - column) * PHASES)];
    const [red, green, blue] = each ? [each.getUint8(3 * index), each.getUint8(3 * index + 1), each.getUint8(3 * index + 2)] : rgb;
    for (let part = 0; part < stamp.length; part += 3) {
      const px = column + stamp[part];
      const py = row + stamp[part + 1];
      if (px < 0 || py < 0 || px >= width || py >= height) continue;
      const cover = stamp[part + 2];
      const at = 4 * (py * width + px);
      pixels[at] += ((red - pixels[at]) * cover) >> 8;
      pixels[at + 1] += ((green - pixels[at + 1]) * cover) >> 8;
      pixels[at + 2] += ((blue - pixels[at + 2]) * cover) >> 8;
    }
  }
}

export default {
  render({ model, el }) {
    const canvas = make("canvas", { class: "tinote-stage", role: "img" });
    const scale = fitCanvas(canvas, model.get("width"), model.get("height"));
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const paper = new Uint32Array(image.data.buffer);
    let discs = stamps(model.get("radius") * scale);
    let last = null;
    const paint = () => {
      const [red, green, blue] = channels(model.get("background") || (isDark(el) ? "#14181d" : "#ffffff"));
      paper.fill((255 << 24) | (blue << 16) | (green << 8) | red);
      if (last) {
        const each = model.get("color") ? null : last.colors;
        splat(image.data, canvas.width, canvas.height, last.positions, last.count, discs, channels(model.get("color") || "#000000"), each);
      }
      context.putImageData(image, 0, 0);
    };
    const show = (message, [positions, colors]) => {
      last = { positions, colors, count: message.count };
      paint();
      const words = [counted(message.count, "particle", "particles")];
      if (message.outside) words.push(`${message.outside.toLocaleString("en")} outside`);
      canvas.setAttribute("aria-label", `${model.get("label")}: ${words.join(", ")}`);
      return words;
    };
    const restyled = () => {
      discs = stamps(model.get("radius") * scale);
      paint();
    };
    const looks = ["change:radius", "change:color", "change:background"];
    for (const event of looks) model.on(event, restyled);
    const dispose = simulationView({ model, el, stage: canvas, show, repaint: paint });
    return () => {
      for (const event of looks) model.off(event, restyled);
      dispose();
    };
  },
};
