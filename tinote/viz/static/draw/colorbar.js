// The bar below a view that tells which numbers its colours stand for. `viz/draw/colorbar.py` draws the same.

const COLORBAR_HEIGHT = 38;
const TICK_SPACE = 60; // Pixels of the bar for each tick, about.
const LEVELS = 255; // The levels of numbers that become colours.

/** The colours of the 256 bytes that numbers are sent as, packed as bytes 0xAABBGGRR; none where a view has no map. */
function colorTable(model) {
  const table = Uint8Array.from(atob(model.get("table")), (letter) => letter.charCodeAt(0));
  return Uint32Array.from(
    { length: table.length / 3 },
    (_, at) => 0xff000000 | (table[3 * at + 2] << 16) | (table[3 * at + 1] << 8) | table[3 * at],
  );
}

/** How numbers lie on the map of `model`. */
const scaleOf = (model, low, high) => {
  const [kind, bend] = [model.get("norm") ?? "linear"].flat();
  return new Scale(kind, low, high, bend);
};

/** The number that a byte of the map of `model` stands for, as exactly as that tells. */
function levelText(model, level, low, high) {
  if (level >= LEVELS) return "not finite";
  const scale = scaleOf(model, low, high);
  const [from, to] = [scale.at(level / LEVELS), scale.at((level + 1) / LEVELS)];
  if (level === 0) return `≤ ${roundedText(to, to - from)}`;
  if (level === LEVELS - 1) return `≥ ${roundedText(from, to - from)}`;
  return roundedText(scale.at((level + 0.5) / LEVELS), to - from);
}

/** The colours of the map of `model`, one pixel each. */
function stripOf(model) {
  const strip = new OffscreenCanvas(LEVELS, 1);
  const context = strip.getContext("2d");
  const image = context.createImageData(LEVELS, 1);
  new Uint32Array(image.data.buffer).set(colorTable(model).subarray(0, LEVELS));
  context.putImageData(image, 0, 0);
  return strip;
}

/**
 * The bar for the map of `model`: `node`, `show(low, high)`, which says what its ends stand for, `draw(width, scale)`,
 * and `renew()`, for another map. A picture of the view has it by `node.paint(context, width)`.
 */
function colorBar(model) {
  const node = make("canvas", { class: "tinote-colorbar", role: "img" });
  const label = model.get("color_label");
  let [ends, size] = [null, null];
  node.paint = (context, width) => {
    if (!ends) return;
    const [low, high] = ends;
    const scale = scaleOf(model, low, high);
    const { ink, muted } = axesInks(node);
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.font = `13px ${AXES_FONT}`;
    context.fillStyle = ink;
    context.fillText(label, 0, 14.5);
    const left = label ? 10 + context.measureText(label).width : 0;
    context.drawImage(stripOf(model), left, 10, width - left, 9);
    context.textAlign = "center";
    context.font = `11px ${AXES_FONT}`;
    context.fillStyle = muted;
    for (const { value, text } of scale.ticks(Math.max(1, Math.round((width - left) / TICK_SPACE)))) {
      const x = left + (width - left) * (high > low ? scale.place(value) : 0.5);
      context.fillRect(Math.min(Math.max(x - 0.5, left), width - 1), 19, 1, 3);
      const half = context.measureText(text).width / 2; // Texts end where the bar does.
      context.fillText(text, Math.min(Math.max(x, left + half), width - half), 29);
    }
  };
  const draw = (width, fineness) => {
    size = [width, fineness];
    fitCanvas(node, width, COLORBAR_HEIGHT, fineness);
    const context = node.getContext("2d");
    context.setTransform(fineness, 0, 0, fineness, 0, 0);
    node.paint(context, width);
  };
  const renew = () => size && draw(...size);
  const show = (low, high) => {
    if (ends && ends[0] === low && ends[1] === high) return;
    ends = [low, high];
    node.setAttribute("aria-label", `${label || "Colours"}: from ${numberText(low)} to ${numberText(high)}`);
    renew();
  };
  return { node, show, draw, renew };
}
