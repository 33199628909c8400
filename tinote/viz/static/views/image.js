// A field as a picture: bytes that are levels of numbers, or colours, painted cell by cell and enlarged.

export default laidOut(({ model, el }) => {
  const canvas = make("canvas", { class: "tinote-stage", role: "img" });
  const [width, height] = [model.get("width"), model.get("height")];
  let scale = fitCanvas(canvas, width, height);
  let looks = model.get("marks");
  const context = canvas.getContext("2d", { willReadFrequently: Object.keys(looks).length > 0 });
  const cells = document.createElement("canvas"); // As many pixels as there are cells.
  const inner = cells.getContext("2d");
  let table = colorTable(model);
  const bar = model.get("colorbar") ? colorBar(model) : null;
  let image = null;
  let marks = {};
  let last = null; // The frame that is shown.

  const paint = () => {
    if (!image) return;
    context.imageSmoothingEnabled = model.get("smooth");
    const zoom = zoomOf(canvas);
    zoom.paint(context, cells);
    // Until the next frame comes, these are of the look before.
    const shown = {
      contours: looks.contours && zoom.fractions(marks.contours),
      arrows: looks.arrows && zoom.fractions(marks.arrows),
    };
    if (!shown.contours && !shown.arrows) return;
    const painted = context.getImageData(0, 0, canvas.width, canvas.height);
    const target = pixelsOf(painted, scale);
    if (shown.contours) paintEdges(target, shown.contours, marks.contourInks, looks.contours);
    if (shown.arrows) paintArrows(target, shown.arrows, null, looks.arrows);
    context.putImageData(painted, 0, 0);
  };
  const show = (message, [bytes, ...more]) => {
    const part = Object.fromEntries((message.parts ?? []).map((name, at) => [name, more[at]]));
    const contours = part.contours && copied(part.contours, Float32Array);
    const inks = part.contours_inks && copied(part.contours_inks, Uint8Array);
    marks = {
      contours,
      contourInks: inksOf(inks, contours?.length >> 2, table),
      arrows: part.arrows && copied(part.arrows, Float32Array),
    };
    if (!image || image.width !== message.columns || image.height !== message.rows) {
      cells.width = message.columns;
      cells.height = message.rows;
      image = inner.createImageData(message.columns, message.rows);
    }
    const pixels = new Uint32Array(image.data.buffer);
    const parts = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    last = { message, parts };
    if ("low" in message) {
      for (let at = 0; at < pixels.length; at += 1) pixels[at] = table[parts[at]];
    } else {
      for (let at = 0; at < pixels.length; at += 1)
        pixels[at] = 0xff000000 | (parts[3 * at + 2] << 16) | (parts[3 * at + 1] << 8) | parts[3 * at];
    }
    inner.putImageData(image, 0, 0);
    paint();
    if (bar && "low" in message) bar.show(message.low, message.high);
    const words = [message.shape.join(" × ")];
    if ("low" in message) words.push(`${numberText(message.low)} to ${numberText(message.high)}`);
    if ("longest" in message) words.push(`arrows up to ${numberText(message.longest)}`);
    if (message.strange) words.push(`${message.strange.toLocaleString("en")} not finite`);
    canvas.setAttribute("aria-label", `${model.get("label")}: ${words.join(", ")}`);
    return words;
  };
  const read = ([across, up]) => {
    if (!last) return "";
    const { columns, rows, shape, low, high } = last.message;
    const within = (part, count) => Math.min(Math.max(Math.floor(part * count), 0), count - 1);
    const [column, row] = [within(across, columns), within(1 - up, rows)];
    const axes = model.get("axes_shown");
    const cell = `[${within(across, shape[0])}, ${within(up, shape[1])}]`;
    const isInCells = axes.ranges.every(([low, high], axis) => !low && high === shape[axis]);
    const place = isInCells ? cell : `${placeText(axes, [across, up], zoomOf(canvas).sides([width, height]))} ${cell}`;
    const at = row * columns + column;
    if (low === undefined) return `${place}: ${[...last.parts.subarray(3 * at, 3 * at + 3)].join(", ")}`;
    const label = model.get("color_label");
    return `${place}: ${label ? `${label} ` : ""}${levelText(model, last.parts[at], low, high)}`;
  };
  const restyle = () => {
    looks = model.get("marks");
    table = colorTable(model);
    bar?.renew();
    paint();
  };
  const unwatch = watchTraits(model, ["smooth", "marks", "table"], restyle);
  const resolve = (wanted) => {
    scale = fitCanvas(canvas, width, height, wanted);
    paint();
  };
  pickOnClick(model, canvas);
  const dispose = simulationView({ model, el, stage: canvas, bar, show, repaint: paint, resolve, read });
  return () => {
    unwatch();
    dispose();
  };
});
