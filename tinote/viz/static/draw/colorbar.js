// The bar below a view that tells which numbers its colours stand for. `viz/draw/colorbar.py` draws the same.

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

/**
 * The bar for the map of `model`: `node`, `show(low, high)`, which says what its ends stand for, and `recolor()`, for
 * another map.
 */
function colorBar(model) {
  const strip = make("canvas", { class: "tinote-strip", width: LEVELS, height: 1 });
  const recolor = () => {
    const context = strip.getContext("2d");
    const image = context.createImageData(LEVELS, 1);
    new Uint32Array(image.data.buffer).set(colorTable(model).subarray(0, LEVELS));
    context.putImageData(image, 0, 0);
  };
  recolor();
  const ticks = make("div", { class: "tinote-ticks" });
  const label = model.get("color_label");
  const node = make(
    "div",
    { class: "tinote-colorbar", role: "img" },
    ...(label ? [make("span", {}, label)] : []),
    make("div", {}, strip, ticks),
  );
  let ends = null;
  const draw = () => {
    if (!ends) return;
    const [low, high] = ends;
    const scale = scaleOf(model, low, high);
    ticks.replaceChildren(
      ...scale.ticks(Math.max(1, Math.round(strip.clientWidth / TICK_SPACE))).map(({ value, text }) => {
        const place = high > low ? scale.place(value) : 0.5;
        return make("span", { style: `left:${100 * place}%` }, text);
      }),
    );
    node.setAttribute("aria-label", `${label || "Colours"}: from ${numberText(low)} to ${numberText(high)}`);
  };
  const show = (low, high) => {
    if (ends && ends[0] === low && ends[1] === high) return;
    ends = [low, high];
    draw();
  };
  const resizes = new ResizeObserver(draw);
  resizes.observe(strip);
  return { node, show, recolor, dispose: () => resizes.disconnect() };
}
