// Shared by the live views: frames painted once an animation frame and acknowledged afterwards; the page's theme.

const BACKLOG = 2; // Frames that wait to be painted, one at a time; of more, the oldest are left out.
const PATIENCE = 300; // Milliseconds in which the first frame mostly comes.

/** A name that no other copy of a view has. */
const newName = () => Math.random().toString(36).slice(2);

/**
 * Connect a view of `model` in `el`: `keep(message, buffers)` takes every frame, `paint(message, buffers)` those that
 * are painted. Where a frame has to be decoded first, `paint` gives a promise of the function that paints it, which is
 * not called once a later frame has been painted: decoding takes longer for one frame than for another. The kernel says
 * which frames are to be acknowledged: an answer for each would make the front end show a busy and an idle kernel at
 * each. A notice over `stage` says why no frames arrive, and `attended(isThere)` is called when the kernel becomes
 * unreachable, and when it is reachable again. `view` is this copy's name. Returns what undoes it.
 */
function connect({ model, el, stage, keep, paint, attended = () => {}, view = newName() }) {
  const pending = [];
  let scheduled = 0;
  let inSight = true;
  let painted = 0;
  let newest = 0; // The number of the frame that is on the stage.
  let waiting = 0;
  let since = performance.now(); // The last frame has come, or the view into sight.
  const visible = () => inSight && !document.hidden;
  let order = 0; // The kernel may handle two messages in the wrong order.
  const tell = (kind, more) => say(model, { kind, view, order: order++, ...more });
  const report = () => {
    since = performance.now();
    tell("visible", { visible: visible() });
  };
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  const begin = () => tell("ready", { visible: visible(), local });
  const notice = noticeOver(stage);
  const draw = () => {
    scheduled = 0;
    if (!pending.length) return;
    const { message, buffers, arrived, asked } = pending.shift();
    if (pending.length) scheduled = requestAnimationFrame(draw);
    const finish = () => {
      newest = message.frame;
      painted += 1;
      clearTimeout(waiting);
      if (el.dataset.kernel === "live") notice("");
      el.dataset.painted = String(painted);
      el.dataset.frame = String(message.frame);
    };
    const acknowledge = () => {
      if (asked) say(model, { kind: "ack", frame: message.frame, waited: (performance.now() - arrived) / 1000 });
    };
    const decoding = paint(message, buffers);
    if (decoding) {
      decoding
        .then((lay) => {
          if (message.frame < newest) return;
          lay();
          finish();
        })
        .finally(acknowledge); // What cannot be decoded must not keep the frames after it from being sent.
    } else {
      finish();
      acknowledge();
    }
  };
  const receive = (message, buffers) => {
    if (message.kind === "report") {
      report();
    } else if (message.kind === "frame") {
      since = performance.now();
      if (message.padded) buffers = buffers.slice(0, -1);
      keep?.(message, buffers);
      pending.push({ message, buffers, arrived: performance.now(), asked: message.ack });
      if (pending.length > BACKLOG) {
        const { asked } = pending.shift();
        pending[0].asked ||= asked; // An acknowledgement holds for those before as well.
      }
      if (!scheduled) scheduled = requestAnimationFrame(draw);
    }
  };
  model.on("msg:custom", receive);
  const observer = new IntersectionObserver((entries) => {
    const now = entries[entries.length - 1].isIntersecting;
    if (now !== inSight) {
      inSight = now;
      report();
    }
  });
  observer.observe(el);
  document.addEventListener("visibilitychange", report);
  const unwatch = watchKernel(model, el, (state) => {
    el.dataset.kernel = state;
    clearTimeout(waiting);
    notice(state === "live" ? "" : state);
    attended(state === "live");
    if (state !== "live") return;
    // A cell that runs keeps the kernel from answering.
    if (!painted) waiting = setTimeout(() => notice("waiting"), PATIENCE);
    begin(); // Also after a reconnection: messages in flight when the connection broke are lost.
  });
  const expected = () => (painted && visible() && model.get("state") === "playing" ? since : null);
  const unwatchAnswers = watchAnswers(model, expected, notice);
  return () => {
    clearTimeout(waiting);
    unwatch();
    unwatchAnswers();
    model.off("msg:custom", receive);
    observer.disconnect();
    document.removeEventListener("visibilitychange", report);
    cancelAnimationFrame(scheduled);
    tell("gone");
  };
}

/**
 * Give back what a view that is gone holds, its pixels above all: ipywidgets keeps the elements of the notebooks that
 * were open in a page.
 */
function release(el) {
  for (const canvas of el.querySelectorAll("canvas")) canvas.width = canvas.height = 0;
  el.replaceChildren();
}

/** Call `changed` once where any of the traits `names` of `model` have changed together. Returns what undoes it. */
function watchTraits(model, names, changed) {
  let waits = false;
  let isOver = false;
  const later = () => {
    if (waits) return;
    waits = true;
    queueMicrotask(() => {
      waits = false;
      if (!isOver) changed();
    });
  };
  for (const name of names) model.on(`change:${name}`, later);
  return () => {
    isOver = true;
    for (const name of names) model.off(`change:${name}`, later);
  };
}

/** The colour behind `el`: red, green and blue, or null where the page has none. */
function paperOf(el) {
  for (let node = el; node; node = node.parentElement) {
    const parts =
      getComputedStyle(node)
        .backgroundColor.match(/[\d.]+/g)
        ?.map(Number) ?? [];
    if (parts.length === 3 || (parts.length === 4 && parts[3] > 0.5)) return parts.slice(0, 3);
  }
  return null;
}

/** Whether the page is dark, judged by the colour behind `el`. */
function isDark(el) {
  const paper = paperOf(el);
  if (!paper) return matchMedia("(prefers-color-scheme: dark)").matches;
  return isDim(paper);
}

/** Whether light texts stand out from a colour. */
const isDim = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue < 128;

/** Call `changed` when the page's theme may have changed. Returns what undoes it. */
function watchTheme(changed) {
  const later = () => setTimeout(changed, 60); // A theme's style sheet arrives after its attributes.
  const observer = new MutationObserver(later);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, {
      attributes: true,
      attributeFilter: ["class", "style", "data-jp-theme-name", "data-jp-theme-light", "data-vscode-theme-kind"],
    });
  }
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", later);
  return () => {
    observer.disconnect();
    preference.removeEventListener("change", later);
  };
}

/**
 * Keep plain keys that are pressed inside of `el` from the notebook, whose shortcuts would edit, move or run cells;
 * Ctrl and Command pass.
 */
function keepKeys(el) {
  const suppress = (node) => node.setAttribute("data-lm-suppress-shortcuts", "true");
  suppress(el);
  // Shortcuts of the focused element are matched before those of the elements around it.
  el.addEventListener("focusin", (event) => suppress(event.target));
  el.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
}

/** An element with attributes, event listeners (`onclick: …`) and children. */
/** What makes the title of a view in `root` the heading of its page, where that shows nothing else. */
const asHeading = (root) => (root.matches("main") ? { role: "heading", "aria-level": 1 } : {});

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** An element of SVG with attributes and children. */
function draw(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Pixels of the screen to a CSS pixel, of which more than two are not told apart. */
const screenScale = () => Math.min(2, window.devicePixelRatio || 1);

/** Size `canvas` to width × height CSS pixels of `scale` pixels each, which it returns. */
function fitCanvas(canvas, width, height, scale = screenScale()) {
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.aspectRatio = `${width} / ${height}`;
  canvas.style.width = `${width}px`;
  return scale;
}

/** Where a pointer is on `node`, as fractions from its bottom left. */
function placeIn(node, { clientX, clientY }) {
  const box = node.getBoundingClientRect();
  return [(clientX - box.left) / box.width, 1 - (clientY - box.top) / box.height];
}
