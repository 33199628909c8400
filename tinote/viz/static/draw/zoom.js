// A part of a stage in the plane, enlarged in the page: nothing else is asked for or sent.

const MOST_ZOOM = 64; // Places have 16 bits.
const [WHEEL_ZOOM, KEY_ZOOM, KEY_PAN] = [1.0012, 1.25, 0.1];

/** The part that is shown: its `left` and `bottom`, and its `share` of the width and of the height. */
class Zoom {
  constructor() {
    this.reset();
  }
  reset() {
    [this.left, this.bottom, this.share] = [0, 0, 1];
  }
  get isWhole() {
    return this.share === 1;
  }
  /** The place of the whole stage that is shown at one. */
  place([across, up]) {
    return [this.left + across * this.share, this.bottom + up * this.share];
  }
  /** The size in pixels that the whole stage would have. */
  sides([width, height]) {
    return [width / this.share, height / this.share];
  }
  /** Enlarge by a factor what is at a place, which stays there. */
  enlarge(factor, [across, up]) {
    const share = Math.min(Math.max(this.share / factor, 1 / MOST_ZOOM), 1);
    const [left, bottom] = [this.left + across * (this.share - share), this.bottom + up * (this.share - share)];
    this.share = share;
    this.show(left, bottom);
  }
  show(left, bottom) {
    [this.left, this.bottom] = [left, bottom].map((part) => Math.min(Math.max(part, 0), 1 - this.share));
  }
  /** Move what is shown by parts of the stage. */
  pan(across, up) {
    this.show(this.left - across * this.share, this.bottom - up * this.share);
  }
  /** Places, two fractions each, as parts of what is shown. */
  fractions(places) {
    if (this.isWhole || !places) return places;
    return places.map((part, at) => (part - (at & 1 ? this.bottom : this.left)) / this.share);
  }
  /** The same of places as whole numbers, `most` for 1; those that are not seen are `hidden`. */
  codes(places, most, hidden) {
    if (this.isWhole || !places) return places;
    const found = new Uint16Array(places.length).fill(hidden);
    for (let at = 0; at < places.length; at += 2) {
      const u = (places[at] - this.left * most) / this.share;
      const v = (places[at + 1] - this.bottom * most) / this.share;
      if (places[at] !== hidden && u >= 0 && v >= 0 && u <= most && v <= most) [found[at], found[at + 1]] = [u, v];
    }
    return found;
  }
  /** Draw the part of a canvas that is seen. */
  paint(context, canvas) {
    const { width, height } = canvas;
    const top = 1 - this.bottom - this.share;
    const part = [this.left * width, top * height, this.share * width, this.share * height];
    context.drawImage(canvas, ...part, 0, 0, context.canvas.width, context.canvas.height);
  }
  /** The axes of what is shown. */
  axes(axes) {
    if (this.isWhole || !axes.ranges) return axes;
    const ranges = axes.ranges.map(([low, high], axis) => {
      const from = low + [this.left, this.bottom][axis] * (high - low);
      return [from, from + this.share * (high - low)];
    });
    if (!axes.x) return { ...axes, ranges };
    const scaled = ({ label, ticks }, axis) =>
      new Scale("linear", ...ranges[axis]).axis(label, Math.max(ticks.length, 3));
    return { ...axes, ranges, x: scaled(axes.x, 0), y: scaled(axes.y, 1) };
  }
}

/** Where a pointer is on a stage, as fractions of the whole of it. */
const placeOn = (stage, event) => zoomOf(stage).place(placeIn(stage, event));

const WHOLE = new Zoom();
const zoomOf = (stage) => stage.tinoteZoom ?? WHOLE;

/**
 * Let wheel, keys and drags, with Shift where a press `means` something, enlarge a part of `stage`; `changed()` paints
 * it. As in space, the wheel is the page's until the stage is clicked, or with Ctrl.
 */
function zoomStage(stage, means, changed) {
  const zoom = (stage.tinoteZoom = new Zoom());
  stage.tabIndex = 0;
  stage.title = `Click, then scroll to zoom; ${means ? "Shift+drag" : "drag"} to move; double-click to reset`;
  const act = (change) => {
    change();
    stage.classList.toggle("tinote-turnable", !zoom.isWhole);
    changed();
  };
  const onWheel = (event) => {
    if (document.activeElement !== stage && !event.ctrlKey) return;
    event.preventDefault();
    act(() => zoom.enlarge(WHEEL_ZOOM ** -event.deltaY, placeIn(stage, event)));
  };
  stage.addEventListener("wheel", onWheel, { passive: false });
  let held = null;
  stage.addEventListener("pointerdown", (event) => {
    if (zoom.isWhole || event.button !== 0 || (means && !event.shiftKey)) return;
    event.stopImmediatePropagation();
    held = { id: event.pointerId, at: placeIn(stage, event) };
    stage.setPointerCapture(held.id);
  });
  stage.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    const [now, before] = [placeIn(stage, event), held.at];
    held.at = now;
    act(() => zoom.pan(now[0] - before[0], now[1] - before[1]));
  });
  for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, () => (held = null));
  stage.addEventListener("dblclick", () => act(() => zoom.reset()));
  const middle = [0.5, 0.5];
  const keys = {
    "+": () => zoom.enlarge(KEY_ZOOM, middle),
    "-": () => zoom.enlarge(1 / KEY_ZOOM, middle),
    Home: () => zoom.reset(),
    ArrowLeft: () => zoom.pan(KEY_PAN, 0),
    ArrowRight: () => zoom.pan(-KEY_PAN, 0),
    ArrowUp: () => zoom.pan(0, -KEY_PAN),
    ArrowDown: () => zoom.pan(0, KEY_PAN),
  };
  stage.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act(keys[event.key]);
  });
}
