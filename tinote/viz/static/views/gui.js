// The window of a GUI program: frames as pictures; keys, pointer and wheel go back.

const KEYS = {
  ArrowUp: "Up",
  ArrowDown: "Down",
  ArrowLeft: "Left",
  ArrowRight: "Right",
  Enter: "Return",
  Backspace: "BackSpace",
  CapsLock: "Caps_Lock",
  Meta: "Super",
};
const BUTTONS = ["LMB", "MMB", "RMB"];

export default {
  render({ model, el }) {
    const width = model.get("width");
    const height = model.get("height");
    const title = model.get("label");
    el.classList.add("tinote-gui");
    keepKeys(el);
    const canvas = make("canvas", {
      width,
      height,
      tabindex: 0,
      role: "img",
      "aria-label": `${title}: drawing window; click it to send keys`,
    });
    canvas.style.width = `${width}px`;
    const close = make(
      "button",
      { type: "button", title: "End the loop", onclick: () => say(model, { kind: "close" }) },
      "Stop",
    );
    const name = make("span", {}, title);
    const bar = make("div", { class: "tinote-bar" }, name, close);
    const stage = make("div", { class: "tinote-noticed" }, canvas);
    el.append(make("div", { class: "tinote-window" }, bar, stage));
    const context = canvas.getContext("2d");

    let position = [0, 0];
    const held = (event) => ["Shift", "Control", "Alt"].filter((key) => event.getModifierState(key));
    const send = (event, type, key, delta = [0, 0]) =>
      say(model, { kind: "event", type, key, pos: position, delta, modifier: held(event) });
    const place = (event) => {
      position = placeIn(canvas, event);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      place(event);
      send(event, "Press", BUTTONS[event.button] ?? "LMB");
    });
    canvas.addEventListener("pointerup", (event) => {
      place(event);
      send(event, "Release", BUTTONS[event.button] ?? "LMB");
    });
    let moved = 0;
    canvas.addEventListener("pointermove", (event) => {
      place(event);
      if (event.timeStamp - moved < 15) return; // No more often than frames come.
      moved = event.timeStamp;
      send(event, "Motion", "Motion");
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (document.activeElement !== canvas) return; // A page that scrolls past the window is not meant.
        event.preventDefault();
        place(event);
        send(event, "Motion", "Wheel", [-event.deltaX, -event.deltaY]);
      },
      { passive: false },
    );
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    const key = (event, type) => {
      // The browser's own, and the way out with the keyboard.
      if (event.ctrlKey || event.metaKey || event.key === "Tab") return;
      event.preventDefault();
      if (!event.repeat)
        send(event, type, KEYS[event.key] ?? (event.key.length === 1 ? event.key.toLowerCase() : event.key));
    };
    canvas.addEventListener("keydown", (event) => key(event, "Press"));
    canvas.addEventListener("keyup", (event) => key(event, "Release"));
    canvas.addEventListener("blur", () => say(model, { kind: "blur" }));

    let looks = 0; // The kernel may handle two messages in the wrong order.
    const look = () => {
      looks += 1;
      name.textContent = [title, drawing.reason].filter(Boolean).join(" · ");
      say(model, { kind: "look", draws: drawing.draws, order: looks });
    };
    const drawing = new PageDrawing(model, look);
    if (drawing.reason) look();
    /** Decode a picture: a promise of what does `below()` and lays the picture over it. */
    const over = (part, type, below) =>
      createImageBitmap(new Blob([part], { type })).then((bitmap) => () => {
        below();
        context.drawImage(bitmap, 0, 0, width, height);
        bitmap.close();
      });
    const disconnect = connect({
      model,
      el,
      stage,
      attended: (isThere) => {
        close.disabled = !isThere;
      },
      keep: (message, buffers) => message.scene && drawing.keep(message.scene, buffers),
      paint: (message, buffers) => {
        const drawnBy = (who) => {
          el.dataset.draws = who;
        };
        if (!message.scene) return over(buffers[0], "image/jpeg", () => drawnBy("kernel"));
        const below = () => {
          drawnBy("page");
          drawing.paint(context, message.scene.eye, message.paper, message.paper);
        };
        return message.above ? over(buffers[buffers.length - 1], "image/png", below) : below();
      },
    });
    return () => {
      drawing.close();
      disconnect();
      release(el);
    };
  },
};
