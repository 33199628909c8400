// The last frames of a live view, which the slider below it shows again. The page keeps them as they have come, from a
// kernel or from a Worker, so that all views have them by the same means.

const FRAME_BYTES = 1000; // What a frame takes besides its arrays, about.
const MOST_KEPT = 1e9; // Bytes, whatever a view asks for.

/** The parts of a message by themselves: a part may be a view of more bytes, which would be kept with it. */
function ownParts(parts) {
  return parts.map(({ buffer, byteOffset, byteLength }) =>
    byteLength === buffer.byteLength
      ? new DataView(buffer)
      : new DataView(buffer.slice(byteOffset, byteOffset + byteLength)),
  );
}

/**
 * Frames in bounded memory: past `limit` bytes the oldest go. A frame has its `step` and `parts`, its arrays; those
 * that frames share count once. Frames are numbered as they come.
 */
class Timeline {
  constructor(limit) {
    this.limit = Math.min(Number(limit) || 0, MOST_KEPT);
    this.first = 0;
    this.clear();
  }
  clear() {
    this.frames = [];
    this.bytes = 0;
    this.uses = new Map(); // How many frames have an array.
  }
  /** The number of the newest frame. */
  get last() {
    return this.first + this.frames.length - 1;
  }
  at(number) {
    return this.frames[Math.min(Math.max(number - this.first, 0), this.frames.length - 1)];
  }
  /** The number of the frame whose step is nearest to one. */
  nearest(step) {
    const away = this.frames.map((frame) => Math.abs(frame.step - step));
    return this.first + away.indexOf(Math.min(...away));
  }
  /** Take a frame, in place of the newest if that is of the same step. An earlier step begins anew. */
  add(frame) {
    const newest = this.frames[this.frames.length - 1];
    if (newest && frame.step < newest.step) this.clear();
    else if (newest?.step === frame.step) this.account(this.frames.pop(), -1);
    this.frames.push(frame);
    this.account(frame, 1);
    while (this.bytes > this.limit && this.frames.length > 1) {
      this.account(this.frames.shift(), -1);
      this.first += 1;
    }
  }
  account({ parts }, change) {
    this.bytes += change * FRAME_BYTES;
    for (const { buffer } of parts) {
      const before = this.uses.get(buffer) ?? 0;
      const after = before + change;
      if (after) this.uses.set(buffer, after);
      else this.uses.delete(buffer);
      if (!before || !after) this.bytes += change * buffer.byteLength;
    }
  }
}

/** The slider below a view that goes back: `go(number)` is called with the frame that is wanted; `text` names it. */
function timelineRow(go) {
  const slider = make("input", { type: "range", step: 1, min: 0, max: 0, value: 0, "aria-label": "Timeline" });
  slider.addEventListener("input", () => go(Number(slider.value)));
  slider.title = "Timeline: drag, or press the arrow keys, to see earlier frames again";
  const text = make("output", { class: "tinote-timeline-text" });
  const node = make("div", { class: "tinote-timeline" }, slider);
  /** Show what `timeline` holds, and that its frame `past` is shown, or with null the present. */
  const show = (timeline, past) => {
    const newest = timeline.at(timeline.last);
    const ago = past === null ? 0 : newest.step - timeline.at(past).step;
    slider.min = String(timeline.first);
    slider.max = String(Math.max(timeline.first, timeline.last));
    slider.value = String(past ?? timeline.last);
    slider.disabled = timeline.frames.length < 2;
    text.textContent = ago ? counted(ago, "step ago", "steps ago") : "now";
    slider.setAttribute("aria-valuetext", text.textContent);
  };
  return { node, text, show };
}
