// The live view of a scene in space: the page draws it, or shows pictures of it; pointer and keys move the camera.

const SKIES = { light: ["#eceff4", "#ffffff"], dark: ["#222831", "#111419"] };
const STEEPEST = (89.5 * Math.PI) / 180;
const KEY_ANGLE = (5 * Math.PI) / 180;
const CLICK = 4; // Pixels that the pointer may move during a click.
const KEY_STEP = 0.04; // Of the distance to what the camera looks at.

/** `vector` turned around the unit vector `axis`. */
function turned(vector, axis, angle) {
  const along = times(axis, dot(axis, vector));
  const flat = minus(vector, along);
  return add(along, add(times(flat, Math.cos(angle)), times(cross(axis, flat), Math.sin(angle))));
}

/** The vector from what is looked at to the camera, or the other way round, turned sideways and upwards. */
function swung(arm, up, around, above) {
  const side = turned(arm, up, around);
  const height = Math.asin(Math.max(-1, Math.min(1, dot(unit(side), up))));
  const angle = Math.max(-STEEPEST, Math.min(STEEPEST, height + above)) - height;
  const axis = unit(cross(side, up));
  return norm(axis) > 0.5 ? turned(side, axis, angle) : side;
}

/**
 * Let pointer, wheel and keys move a camera over `canvas`: `get()` gives it, `set(position, target)` gets where it
 * goes, `home()` takes it back, `click(place)` is called for a press that did not move it, as fractions from the bottom
 * left. Where `flies()`, it turns around itself, else around what it looks at.
 */
function moveCamera(canvas, { get, set, home, click, flies }) {
  canvas.classList.add("tinote-turnable");
  canvas.tabIndex = 0;
  canvas.title = flies()
    ? "Drag to look around, W A S D E Q to move; click to pick"
    : "Drag to turn, Shift+drag to move; click to pick, then scroll to zoom; double-click to reset";
  const turn = (around, above) => {
    const { position, target, up } = get();
    const axis = unit(up);
    if (flies()) set(position, add(position, swung(minus(target, position), axis, around, above)));
    else set(add(target, swung(minus(position, target), axis, around, above)), target);
  };
  const shift = (across, upwards, forwards) => {
    const eye = get();
    const [right, up, towards] = axes(eye);
    const way = add(add(times(right, across), times(up, upwards)), times(towards, -forwards));
    const step = times(way, norm(minus(eye.position, eye.target)));
    set(add(eye.position, step), add(eye.target, step));
  };
  const approach = (factor) => {
    const { position, target } = get();
    set(add(target, times(minus(position, target), factor)), target);
  };
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (held || event.button > 2) return;
    const [x, y] = [event.clientX, event.clientY];
    held = { id: event.pointerId, x, y, begin: [x, y], moves: event.shiftKey || event.button !== 0 };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId || !get()) return;
    // A hand is never quite still.
    if (held.begin && Math.hypot(event.clientX - held.x, event.clientY - held.y) < CLICK) return;
    held.begin = null;
    const { width, height } = canvas.getBoundingClientRect();
    const [right, down] = [event.clientX - held.x, event.clientY - held.y];
    [held.x, held.y] = [event.clientX, event.clientY];
    if (held.moves) {
      const scale = (2 * Math.tan((get().field_of_view * Math.PI) / 360)) / height;
      shift(-right * scale, down * scale, 0);
    } else {
      const angle = (Math.PI * (flies() ? 0.4 : 1)) / Math.min(width, height);
      turn(-right * angle, down * angle);
    }
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, (event) => {
      if (held?.id !== event.pointerId) return;
      if (held.begin && !held.moves && end === "pointerup") {
        const box = canvas.getBoundingClientRect();
        click([(held.begin[0] - box.left) / box.width, 1 - (held.begin[1] - box.top) / box.height]);
      }
      held = null;
    });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("dblclick", home);
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== canvas || !get()) return; // A page that scrolls past the view is not meant.
      event.preventDefault();
      approach(1.0012 ** event.deltaY);
    },
    { passive: false },
  );
  const keys = {
    ArrowLeft: () => turn(-KEY_ANGLE, 0),
    ArrowRight: () => turn(KEY_ANGLE, 0),
    ArrowUp: () => turn(0, KEY_ANGLE),
    ArrowDown: () => turn(0, -KEY_ANGLE),
    "+": () => approach(0.9),
    "-": () => approach(1 / 0.9),
    Home: home,
    w: () => shift(0, 0, KEY_STEP),
    s: () => shift(0, 0, -KEY_STEP),
    a: () => shift(-KEY_STEP, 0, 0),
    d: () => shift(KEY_STEP, 0, 0),
    e: () => shift(0, KEY_STEP, 0),
    q: () => shift(0, -KEY_STEP, 0),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || !get()) return;
    event.preventDefault();
    act();
  });
}

export default laidOut(
  ({ model, el }) => {
    const canvas = make("canvas", { class: "tinote-stage", role: "img" });
    let scale = fitCanvas(canvas, model.get("width"), model.get("height"));
    const context = canvas.getContext("2d");
    const view = newName();
    let eye = null; // The camera as this page has it.
    let first = null; // As the kernel has placed it.
    let version = -1;
    let drawn = false; // Whether the last frame is one that the page draws.
    let bitmap = null;
    let box = null; // Whose axes are drawn.
    let wanted = false;

    const paint = () => {
      const own = model.get("background");
      const [top, bottom] = own ? [own, own] : SKIES[isDark(el) ? "dark" : "light"];
      if (drawn) drawing.paint(context, eye, top, bottom);
      else if (bitmap) context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      if (box && eye) paintBox(context, box, eye, bottom, scale);
    };
    let looked = "";
    let looks = 0; // The kernel may handle two messages in the wrong order.
    /** Tell how the page looks. Gives whether a frame comes of that. */
    const look = () => {
      const { draws, reason } = drawing; // With another reason a frame comes, whose words have it.
      const message = { kind: "look", view, dark: isDark(el), scale, draws, reason };
      if (looked === JSON.stringify(message)) return false;
      looked = JSON.stringify(message);
      looks += 1;
      say(model, { ...message, order: looks });
      return true;
    };
    const drawing = new PageDrawing(model, look);
    const adopt = (sent, number) => {
      if (!sent || number === version) return;
      version = number;
      eye = { ...sent };
      first = { position: sent.position, target: sent.target };
    };
    const set = (position, target) => {
      const distance = norm(minus(position, target));
      eye = { ...eye, position, target, near: 1e-3 * distance, far: 1e3 * distance };
      if (wanted) return;
      wanted = true;
      requestAnimationFrame(() => {
        wanted = false;
        if (drawn) paint();
        say(model, { kind: "camera", position: eye.position, target: eye.target });
      });
    };
    moveCamera(canvas, {
      get: () => eye,
      set,
      home: () => first && set(first.position, first.target),
      click: (place) => say(model, { kind: "pick", place }),
      flies: () => model.get("controls") === "fly",
    });
    const keep = (message, buffers, isShown) => {
      adopt(message.scene?.eye ?? message.eye, message.eyeVersion);
      if (message.scene && isShown) drawing.keep(message.scene, buffers);
    };
    const known = new Map(); // The arrays of the newest scene by their numbers: a frame brings those that are new.
    const remember = (message, buffers) => {
      const parts = ownParts(buffers.slice(0, -1));
      const { scene } = message;
      if (!scene) return { parts, show: () => show(message, parts) };
      scene.parts.forEach((number, at) => known.set(number, parts[at]));
      const used = arraysOf(scene);
      for (const number of [...known.keys()]) if (!used.has(number)) known.delete(number);
      if (known.size < used.size) return null;
      const whole = { ...message, scene: { ...scene, parts: [...known.keys()] } };
      const all = [...known.values()];
      const again = () => {
        drawing.keep(whole.scene, all);
        return show(whole, all);
      };
      return { parts: all, show: again };
    };
    const show = (message, buffers) => {
      const words = [message.picked, message.reason ?? drawing.reason].filter(Boolean);
      canvas.setAttribute("aria-label", model.get("label"));
      box = message.box;
      if (message.scene && drawing.draws) {
        drawn = true;
        el.dataset.draws = "page";
        paint();
      }
      if (!message.picture) return words;
      return createImageBitmap(new Blob([buffers[0]], { type: message.picture })).then((found) => () => {
        drawn = false;
        el.dataset.draws = "kernel";
        bitmap?.close();
        bitmap = found;
        paint();
        return words;
      });
    };
    const repaint = () => {
      const asked = look();
      paint();
      return asked;
    };
    const unwatch = watchTraits(model, ["background"], paint);
    const read = () => undefined; // What makes the frames knows.
    const resolve = (wanted) => {
      scale = fitCanvas(canvas, model.get("width"), model.get("height"), wanted);
      paint();
    };
    const frames = { show, repaint, resolve, keep, remember };
    const dispose = simulationView({ model, el, stage: canvas, ...frames, read, wait: REST, view });
    return () => {
      unwatch();
      drawing.close();
      bitmap?.close();
      dispose();
    };
  },
  ["controls", "renderer"],
);
