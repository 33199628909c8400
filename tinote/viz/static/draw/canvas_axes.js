// Axes on a canvas, around charts and stages: what `viz/draw/axes.py` draws into pictures.

const [TICK_GAP, TICK_LENGTH, NARROWEST_TICK] = [6, 4, 46];
const AXES_FONT = 'system-ui, "DejaVu Sans", sans-serif';

/** How wide a text is. */
const measured = (() => {
  let context = null;
  return (text) => {
    context ??= document.createElement("canvas").getContext("2d");
    context.font = `11px ${AXES_FONT}`;
    return context.measureText(text).width;
  };
})();

const widestTick = ({ ticks }) => Math.max(0, ...ticks.map(({ text }) => measured(text)));

/** Pixels that a vertical axis takes at its side. */
const sideRoom = (up) => widestTick(up) + (up.label ? 26 : 10);

/** Pixels around a stage that its axes take. */
function roomOf({ x, y }) {
  if (!x) return { left: 0, top: 0, right: 0, bottom: 0 };
  const last = x.ticks[x.ticks.length - 1];
  const beyond = last?.at > 0.9 ? measured(last.text) / 2 : 0;
  return {
    left: Math.ceil(widestTick(y)) + (y.label ? 28 : 12),
    top: 8,
    right: Math.max(Math.ceil(beyond), 8),
    bottom: x.label ? 38 : 22,
  };
}

/**
 * Draw the axes `x` and `y`, and the one at the right side, around `box`: left, top, right and bottom; lines across it
 * for those that `grid` names.
 */
function paintAxes(context, { x, y, right = null, grid = "y" }, box, { ink, muted, line }) {
  const [left, top, end, bottom] = box;
  const write = (text, across, down, align, baseline) => {
    [context.textAlign, context.textBaseline] = [align, baseline];
    context.fillText(text, across, down);
  };
  const upright = (text, across) => {
    context.save();
    context.translate(across, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    write(text, 0, 0, "center", "top");
    context.restore();
  };
  context.font = `11px ${AXES_FONT}`;
  context.lineWidth = 1;
  [context.strokeStyle, context.fillStyle] = [line, muted];
  paintTicks(context, { x, y }, box, grid);
  for (const { at, text } of y.ticks) write(text, left - TICK_GAP, bottom - at * (bottom - top), "right", "middle");
  for (const { at, text } of right?.ticks ?? [])
    write(text, end + TICK_GAP, bottom - at * (bottom - top), "left", "middle");
  for (const { at, text } of withRoom(x, end - left))
    write(text, left + at * (end - left), bottom + TICK_GAP, "center", "top");
  context.fillStyle = ink;
  write(x.label, (left + end) / 2, bottom + 34, "center", "bottom");
  if (y.label) upright(y.label, left - sideRoom(y));
  if (right?.label) upright(right.label, end + sideRoom(right) - 16);
}

/** The colours of axes on `node`. */
function axesInks(node) {
  const styles = getComputedStyle(node);
  const of = (name, other) => styles.getPropertyValue(name) || other;
  return { ink: of("--ink", "#333"), muted: of("--muted", "#666"), line: of("--line", "#ddd") };
}

/** Draw the axes of a stage, which lies in `box`, and its grid, which stands out from most colours. */
function paintStageAxes(context, axes, box, inks) {
  paintAxes(context, { ...axes, grid: "" }, box, inks);
  if (axes.grid) paintGrid(context, axes, box);
}

function paintGrid(context, axes, box) {
  context.strokeStyle = "#8a909880";
  paintTicks(context, axes, box, "xy");
}

/** The ticks along the bottom whose texts have room. */
const withRoom = ({ ticks }, width) => {
  const every = Math.max(1, Math.ceil((ticks.length * NARROWEST_TICK) / width));
  return ticks.filter((_, number) => number % every === 0);
};

/** Lines across `box` at the ticks of the axes that `grid` names, and short ones outside of it at the others. */
function paintTicks(context, { x, y }, [left, top, right, bottom], grid) {
  context.beginPath();
  for (const { at } of withRoom(x, right - left)) {
    const across = Math.round(left + at * (right - left)) + 0.5;
    context.moveTo(across, grid.includes("x") ? top : bottom);
    context.lineTo(across, grid.includes("x") ? bottom : bottom + TICK_LENGTH);
  }
  for (const { at } of y.ticks) {
    const up = Math.round(bottom - at * (bottom - top)) + 0.5;
    context.moveTo(grid.includes("y") ? left : left - TICK_LENGTH, up);
    context.lineTo(grid.includes("y") ? right : left, up);
  }
  context.stroke();
}

/** A stage in its axes, if `model` has any: the element, how much wider that makes it, and what draws them anew. */
function framed(model, stage) {
  const node = make("div", { class: "tinote-noticed" }, stage);
  const whole = model.get("axes_shown") ?? {};
  const room = roomOf(whole);
  const wide = room.left + room.right;
  if (!whole.x) return { node, wide, draw: () => {} };
  const over = make("canvas", { class: "tinote-axes" });
  node.append(over);
  const draw = () => {
    const axes = zoomOf(stage).axes(whole);
    room.left = Math.max(room.left, roomOf(axes).left); // Wider once, the stage stays there.
    node.style.padding = `${room.top}px ${room.right}px ${room.bottom}px ${room.left}px`;
    const scale = screenScale();
    [over.width, over.height] = [node.clientWidth * scale, node.clientHeight * scale];
    const { offsetLeft: left, offsetTop: top, offsetWidth, offsetHeight } = stage;
    const context = over.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    paintStageAxes(context, axes, [left, top, left + offsetWidth, top + offsetHeight], axesInks(node));
  };
  return { node, wide, draw };
}

/** A place of the stage, as its axes tell it. */
function placeText({ x, y, ranges }, [across, up], [width, height]) {
  const texts = [
    [x?.label || "x", across, ranges[0], width],
    [y?.label || "y", up, ranges[1], height],
  ].map(([name, part, [low, high], side]) => `${name} ${roundedText(low + part * (high - low), (high - low) / side)}`);
  return texts.join(", ");
}
