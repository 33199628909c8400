// What the explorer knows of one stage and of places in the source, and the words for it.

/** Where a stage's lines come from, ready to be asked. */
class Stage {
  constructor({ text = "", places = [], further = {}, primals = {}, adjoints = [], target, problem }, kind) {
    this.problem = problem;
    this.target = target;
    this.kind = problem ? "plain" : kind;
    this.texts = (problem ?? text).split("\n");
    this.places = places;
    this.further = further;
    this.primals = primals;
    this.adjoints = new Set(adjoints);
    this.byRow = new Map();
    this.texts.forEach((_, line) => {
      for (const row of this.rows(line)) {
        if (!this.byRow.has(row)) this.byRow.set(row, []);
        this.byRow.get(row).push(line);
      }
    });
  }

  /** Where its names are bound and used; found out when first asked for. */
  get names() {
    this.known ??= new Names(this);
    return this.known;
  }

  /** The row of the source that a line begins in, -1 for none. */
  row(line) {
    return this.places[3 * line] ?? -1;
  }

  /** Its columns there: [first, last or -1]. */
  columns(line) {
    return [this.places[3 * line + 1], this.places[3 * line + 2]];
  }

  rows(line) {
    return this.further[line] ?? (this.row(line) >= 0 ? [this.row(line)] : []);
  }

  /**
   * The variable that a line binds, or the one whose operation it differentiates: what ties a primal to its adjoints.
   */
  tie(line) {
    if (!TEXT_KINDS[this.kind]?.ours) return "";
    return this.primals[line] || bound(this.texts[line].trim(), this.kind);
  }
}

const FOLD_AT = 0.6; // A part that is dragged to less than this share of its least size folds.

/** What a place in the source, [row, first column, last column or -1], highlights. */
const placeFocus = ([row, column, end]) => ({
  side: -1,
  line: row,
  rows: new Set([row]),
  row,
  column: end >= 0 ? column : -1,
  end,
  tie: "",
});

/** What a place in the source points at: its line, and the smallest expression around it. */
function sourceFocus(docs, row, column) {
  let best = null;
  for (const stage of docs ?? []) {
    for (const line of stage?.byRow.get(row) ?? []) {
      const [begin, end] = stage.columns(line);
      if (stage.row(line) === row && column >= begin && column < end && (!best || end - begin < best[1] - best[0]))
        best = [begin, end];
    }
  }
  return { side: -1, line: row, rows: new Set([row]), row, column: best?.[0] ?? -1, end: best?.[1] ?? -1, tie: "" };
}

const duration = (seconds) => {
  if (!seconds) return "";
  if (seconds < 0.0995e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.0995) return `${(seconds * 1e3).toPrecision(2)} ms`;
  return seconds < 0.9995 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toPrecision(2)} s`;
};
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** What is counted in a stage of this kind. */
const nounOf = (kind) => TEXT_KINDS[kind].noun;

/** A button that copies what `text()` gives; `say(text)` is called with `done`, or with the text where it cannot. */
function copyButton(label, title, text, done, say) {
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => say(`Copied: ${done}`),
      () => say(text()),
    );
  return make("button", { type: "button", class: "copy", title, onclick: copy }, label);
}

/** A button that is pressed or not. */
function toggleButton(label, title, onclick) {
  return make("button", { type: "button", class: "toggle", "aria-pressed": "false", title, onclick }, label);
}

/**
 * What LLVM compiles for, and a button that copies the commands that do the same; `say` is called with what was copied.
 */
function targetParts(target, say) {
  if (!target) return [];
  const { command, text } = target;
  const done = "opt and llc with the options and features of this machine";
  return [
    make("span", { class: "target", title: command }, text),
    copyButton("Copy options", command, () => command, done, say),
  ];
}

/** A button that gives a view the whole screen, and back. */
function fullScreenButton(root) {
  const toggle = () => (document.fullscreenElement === root ? document.exitFullscreen() : root.requestFullscreen());
  const button = make("button", {
    type: "button",
    class: "step full",
    "aria-label": "Full screen",
    title: "Full screen",
    onclick: toggle,
  });
  button.hidden = !document.fullscreenEnabled;
  return button;
}

/**
 * A line between two parts of `body` that is dragged, or moved by arrow keys: sets the CSS variable `name` to what
 * `measure(at, box)` gives for a distance from the left edge, or from the `top`: [value, least, most, unit]. Where
 * there is a part to fold, dragging the line to its end folds it, and so does Enter: `fold.is()`, `fold.to(isFolded)`.
 */
function divider(label, name, measure, body, fold, top = false) {
  let before = ""; // The size when the line was taken, which the part has again when it unfolds.
  const move = (at) => {
    const box = body.getBoundingClientRect();
    const [value, least, most, unit] = measure(at, box);
    const shown = Math.max(least, Math.min(most, value));
    const isFolded = value < least * FOLD_AT && fold.can();
    fold.to(isFolded);
    body.style.setProperty(name, isFolded ? before : `${shown.toFixed(1)}${unit}`);
    const whole = unit === "%" ? 100 : top ? box.height : box.width;
    line.setAttribute("aria-valuenow", String(isFolded ? 0 : Math.round((100 * shown) / whole)));
  };
  const inside = (x, y) => {
    const box = body.getBoundingClientRect();
    return top ? y - box.top : x - box.left;
  };
  const at = (event) => inside(event.clientX, event.clientY);
  const usual = () => {
    fold.to(false);
    body.style.removeProperty(name);
  };
  const line = make("div", {
    class: `divider divider${name}`,
    role: "separator",
    tabindex: 0,
    "aria-orientation": top ? "horizontal" : "vertical",
    "aria-label": label,
    "aria-valuenow": 50,
    title: "Drag to resize, to its end to fold (Enter); double-click for the usual size",
    ondblclick: usual,
    onpointerdown: (event) => {
      before = body.style.getPropertyValue(name);
      line.setPointerCapture(event.pointerId);
    },
    onpointermove: (event) => line.hasPointerCapture(event.pointerId) && move(at(event)),
    onkeydown: (event) => {
      const step = (top ? { ArrowUp: -19, ArrowDown: 19 } : { ArrowLeft: -16, ArrowRight: 16 })[event.key];
      if (!step && event.key !== "Enter") return;
      event.preventDefault();
      if (!step || fold.is()) {
        if (fold.can()) fold.to(!fold.is());
        return;
      }
      const own = line.getBoundingClientRect();
      move(inside(own.left + own.width / 2, own.top + own.height / 2) + step);
    },
  });
  return line;
}
