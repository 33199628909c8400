// What a view shows as one picture.

/** The stage, the bar of colours and the plot, as the view shows them, on one canvas. */
function pictureOf(model, el, canvas = document.createElement("canvas")) {
  const dark = isDark(el);
  const stage = el.querySelector(".tinote-stage");
  const chart = el.querySelector(".tinote-chart");
  const bar = el.querySelector(".tinote-colorbar");
  const inner = (stage ?? chart).width;
  const scale = inner / model.get("width");
  const axes = stage ? zoomOf(stage).axes(model.get("axes_shown") ?? {}) : {};
  const room = roomOf(axes);
  const width = axes.x ? 2 * Math.ceil((inner + (room.left + room.right) * scale) / 2) : inner;
  const parts = [stage, bar, chart].filter(Boolean);
  const heightOf = (part) => {
    if (part === bar) return COLORBAR_HEIGHT * scale;
    if (part === stage) return Math.round(part.height + (room.top + room.bottom) * scale);
    return Math.round((part.height * width) / part.width);
  };
  const legend = chart ? 24 * scale : 0;
  // Films have even sides.
  const height = 2 * Math.ceil((parts.reduce((sum, part) => sum + heightOf(part), 0) + legend) / 2);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = `rgb(${paperOf(el) ?? [255, 255, 255]})`;
  context.fillRect(0, 0, width, height);
  let top = 0;
  for (const part of parts) {
    if (part === bar) {
      context.setTransform(scale, 0, 0, scale, 0, top);
      bar.paint(context, width / scale);
      context.setTransform(1, 0, 0, 1, 0, 0);
    } else if (part === stage) {
      context.drawImage(part, room.left * scale, room.top * scale, part.width, part.height);
      if (axes.x) {
        context.setTransform(scale, 0, 0, scale, 0, 0);
        const box = [room.left, room.top, room.left + part.width / scale, room.top + part.height / scale];
        paintStageAxes(context, axes, box, axesInks(el));
        context.setTransform(1, 0, 0, 1, 0, 0);
      }
    } else {
      top += paintLegend(context, model, top, legend, scale, dark);
      context.drawImage(part, 0, top, width, heightOf(part));
    }
    top += heightOf(part);
  }
  return canvas;
}

/** The names of a plot's lines with their colours. Gives the height that they take. */
function paintLegend(context, model, top, height, scale, dark) {
  const look = model.get("chart"); // `ChartLook` of `viz/draw/chart.py`.
  context.setTransform(scale, 0, 0, scale, 0, top);
  context.font = "13px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  let left = 4;
  model.get("series").forEach((name, at) => {
    if (name === look.x) return;
    context.fillStyle = SERIES_COLORS[dark ? "dark" : "light"][at];
    context.fillRect(left, 10, 14, 3);
    context.fillStyle = dark ? "#e3e6ea" : "#222222";
    context.fillText(nameIn(look, name), left + 20, 12);
    left += 36 + context.measureText(nameIn(look, name)).width;
  });
  context.setTransform(1, 0, 0, 1, 0, 0);
  return height;
}
