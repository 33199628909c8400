// The local model of a live view: what anywidget's model is to it in a notebook. Its simulation runs in a Worker, so
// that a slow step never freezes the page; pictures and films are made here, of what the view shows.

const STOP_PATIENCE = 500; // Milliseconds that a step may take after Stop before its Worker is ended.
const FILMS = ["video/mp4;codecs=avc1.42E01E", "video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];
const FILM_RATE = 60;
const LONGEST_PRINT = 4000; // Characters of prints that stay under a view.

class LocalModel {
  /** `view`: what the page knows of one; `program`: its bytes; `makeWorker()` starts a Worker that serves the page. */
  constructor(view, program, makeWorker, el) {
    Object.assign(this, { view, program, makeWorker, el, handlers: new Map(), asked: new Map(), said: new Map() });
    this.traits = { ...view.traits, state: "paused", recording: false, error_card: "", film: true };
    this.traits.colors = bytesAsView(view.traits.colors);
    this.isVisible = false;
    this.isLocal = true;
    this.begin();
  }

  // What views call: anywidget's model.

  get(name) {
    return this.traits[name];
  }
  set(name, value) {
    if (this.traits[name] === value) return;
    this.traits[name] = value;
    if (name === "steps_per_frame") this.say("speed", { kind: "speed", steps: value });
    this.tell(`change:${name}`);
  }
  save_changes() {}
  on(event, handler) {
    this.handlers.set(event, [...(this.handlers.get(event) ?? []), handler]);
  }
  off(event, handler) {
    this.handlers.set(
      event,
      (this.handlers.get(event) ?? []).filter((other) => other !== handler),
    );
  }
  send(message) {
    if (message.kind === "record") this.recordOrSave(message.page, message.as === "gif");
    else {
      if ("visible" in message) this.isVisible = message.visible;
      if (message.kind === "stop") this.insist();
      if (message.kind === "look") this.say("look", message);
      else if (message.kind === "device") this.say("device", message);
      else if (message.kind === "change" && this.view.controls[message.control].kind !== "button")
        this.say(`control ${message.control}`, message);
      else this.worker.postMessage(message);
    }
  }

  // The Worker.

  /** Tell the Worker what another one, in its place, is sent again: the last of its kind. */
  say(kind, message) {
    this.said.set(kind, message);
    this.worker.postMessage(message);
  }
  begin() {
    this.worker = this.makeWorker();
    this.worker.onmessage = ({ data }) => this.receive(data.message, data.buffers);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail({ message: event.message || "the simulation has ended" });
    };
    this.worker.postMessage({ kind: "begin", view: this.view, program: this.program });
  }
  receive(message, buffers) {
    if (message.kind === "traits") {
      const { error, ...values } = message.values;
      if (error) this.fail(error);
      else if (error === null) this.set("error_card", "");
      if ("state" in values) clearTimeout(this.impatience);
      for (const [name, value] of Object.entries(values)) this.set(name, value);
    } else if (message.kind === "prints") {
      this.print(message.text);
    } else if (message.kind === "field") {
      this.asked.get(message.number)?.({ ...message, data: buffers[0] });
      this.asked.delete(message.number);
    } else {
      this.tell("msg:custom", message, buffers);
      if (message.frame === 1) requestAnimationFrame(() => performance.mark("tinote-painted"));
      if (this.film) requestAnimationFrame(() => this.film?.draw());
    }
  }
  tell(event, ...details) {
    for (const handler of this.handlers.get(event) ?? []) handler(...details);
  }
  fail(error) {
    this.set("error_card", errorCard(error));
    this.set("state", "stopped");
  }
  /** A step that does not end is ended with its Worker; another one begins where the page has begun. */
  insist() {
    clearTimeout(this.impatience);
    this.impatience = setTimeout(() => {
      this.worker.terminate();
      this.begin();
      this.worker.postMessage({ kind: "ready", visible: this.isVisible });
      for (const message of this.said.values()) this.worker.postMessage(message);
      this.fail({
        message: "a step took too long and was stopped in the middle",
        hint: "the simulation is back at its start",
      });
    }, STOP_PATIENCE);
  }
  /** What a field holds now, as `{ step, data }`. */
  read(field) {
    return new Promise((resolve) => {
      const number = newName();
      this.asked.set(number, resolve);
      this.worker.postMessage({ kind: "read", field, number });
    });
  }
  print(added) {
    const style = `max-width:${this.traits.width}px`;
    this.prints ??= this.el.appendChild(make("pre", { class: "tinote-prints", role: "log", tabIndex: 0, style }));
    const { scrollHeight, scrollTop, clientHeight } = this.prints;
    const text = this.prints.textContent + added;
    const excess = text.length - LONGEST_PRINT;
    this.prints.textContent = excess > 0 ? text.slice(text.indexOf("\n", excess) + 1) : text;
    // The last lines, unless somebody reads others.
    if (scrollHeight - scrollTop - clientHeight < 20) this.prints.scrollTop = this.prints.scrollHeight;
  }

  // Pictures and films.

  async deliver(blob, ending, page) {
    const bytes = new DataView(await blob.arrayBuffer());
    this.tell("msg:custom", { kind: "file", ending, type: blob.type, page }, [bytes]);
  }
  /** What the record button does: begin a film, or hand it over. The browser encodes it. */
  recordOrSave(page, asGif) {
    if (this.film) {
      this.film.stop();
      return;
    }
    if (asGif) {
      const recorder = new GifRecorder();
      const draw = () => recorder.add(pictureOf(this, this.el));
      const stop = async () => {
        this.film = null;
        this.deliver(await recorder.file(), "gif", page);
        this.set("recording", false);
      };
      this.film = { draw, stop };
      this.set("recording", "gif");
      draw();
      return;
    }
    const type = FILMS.find((one) => globalThis.MediaRecorder?.isTypeSupported(one));
    if (!type) {
      this.set("error_card", errorCard({ message: "this browser cannot record videos" }));
      return;
    }
    const canvas = pictureOf(this, this.el);
    const recorder = new MediaRecorder(canvas.captureStream(FILM_RATE), { mimeType: type, videoBitsPerSecond: 8e6 });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    recorder.onstop = () => {
      this.film = null;
      this.set("recording", false);
      const kind = type.slice(6, type.indexOf(";") < 0 ? undefined : type.indexOf(";"));
      this.deliver(new Blob(parts, { type: `video/${kind}` }), kind, page);
    };
    this.film = { draw: () => pictureOf(this, this.el, canvas), stop: () => recorder.stop() };
    recorder.start();
    this.set("recording", true);
  }
}

/** Bytes as anywidget gives them. */
function bytesAsView(bytes) {
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new DataView(new ArrayBuffer(0));
}

/** An error as `viz/notebook/error_view.py` shows it; what comes from the user is escaped. */
function errorCard({ message, hint, file, line, column, source }) {
  const rows = [make("span", { class: "place" }, line ? `${file}, line ${line}` : file)];
  if (source) {
    const number = `${line} | `;
    rows.push("\n", make("span", { class: "number" }, number), make("span", { class: "source" }, source));
    rows.push("\n", make("span", { class: "caret" }, `${" ".repeat(number.length + column)}^`));
  }
  const place = file ? [make("pre", {}, ...rows)] : [];
  const said = [...place, make("p", { class: "message" }, message)];
  if (hint) said.push(make("p", { class: "help" }, `help: ${hint}`));
  return make("div", { class: "tinote-error-view", role: "group" }, make("div", { class: "said" }, ...said)).outerHTML;
}
