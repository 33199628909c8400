// What the kernel is to a live view, in a Worker of a page: it advances the program, makes frames as the page takes
// them, and tells the user's functions what the pointer and the controls do. The rules are those of
// `viz/live/simulation.py`, `viz/live/pointer.py` and `FrameCredits`.

const FRAME_MILLISECONDS = 1000 / 60; // A page paints no more often than this.
const WINDOW = 3; // Frames that may be on their way.
const PATIENCE_MILLISECONDS = 25; // After so long, steps make way for what the page says.
const TRIAL_MILLISECONDS = 100; // For pictures that tell how fast steps are.

/** What makes the frames of a view: of a plot, whose samples come with each, nothing. */
class Frames {
  constructor(sources, look, traits) {
    Object.assign(this, { sources, look, traits });
    const colors = look.scale && Uint8Array.from(atob(traits.table), (letter) => letter.charCodeAt(0));
    this.map = { ...look.scale, norm: traits.norm, colors };
  }
  /** The state after `step` steps. */
  capture() {
    return { message: {}, buffers: [] };
  }
  /** What the page keeps from frame to frame: all of it, or what the last one has added. */
  kept() {
    return { message: {}, buffers: [] };
  }
  /** What is seen at a place of the stage, in words. */
  wordsAt() {
    return "";
  }
  /** The page has said something else. Gives the traits that follow; null for what is not known. */
  obey(message) {
    return message.kind === "pick" ? { picked: this.pick(...message.place, true).element } : null;
  }
}
const FRAMES_OF = { plot: Frames }; // By the kind of view.

/** What the pointer has done since the frame before, in order; of moves that follow each other only the last counts. */
class PointerQueue {
  constructor() {
    this.messages = [];
    this.held = null;
  }
  add(phase, [across, up]) {
    if (phase === "move" && this.messages[this.messages.length - 1]?.phase === "move") this.messages.pop();
    this.messages.push({ phase, across, up });
  }
  /** What the user's function gets now: each message, or that a button is still held. */
  take(pick) {
    const events = [];
    const messages = this.messages.splice(0);
    for (const { phase, across, up } of messages) {
      if (!this.held && phase !== "press") continue; // Pressed outside of the stage.
      const { position, element } = pick(across, up, phase === "press");
      const before = this.held ? this.held.position : position;
      const pointer = {
        position,
        movement: position.map((part, axis) => part - before[axis]),
        element: this.held && element === null ? this.held.element : element,
        pressed: phase !== "release",
      };
      events.push(pointer);
      this.held = pointer.pressed ? pointer : null;
    }
    if (!events.length && this.held) {
      this.held = { ...this.held, movement: this.held.position.map(() => 0), pressed: true };
      events.push(this.held);
    }
    return events;
  }
}

/**
 * A simulation: `program` runs what was captured, `view` says what it is of and how it is shown, `post(message,
 * buffers)` reaches the page.
 */
class Simulation {
  constructor(program, view, post) {
    Object.assign(this, { program, view, post });
    this.gpu = null; // The program on the GPU, if there is one,
    this.isOnGpu = false; // and whether the simulation runs there.
    this.shown = sourcesIn(view.look);
    const sources = new Sources(program, (name) => this.show(name));
    this.frames = new FRAMES_OF[view.kind](sources, view.look, view.traits);
    this.history = new History(1 + view.plots.length);
    this.pointing = new PointerQueue();
    this.state = "paused";
    this.stepsPerFrame = view.traits.steps_per_frame;
    this.steps = 0;
    [this.sent, this.acknowledged, this.isVisible] = [0, 0, false];
    this.jobs = Promise.resolve();
    this.runs = 0; // Goes up when what runs is to end.
    this.waiting = []; // Those that wait until the page takes a frame.
    this.changes = []; // What controls say and waits,
    this.changed = new Map(); // and what they said last.
    this.last = null;
  }

  /** What the page says. */
  obey(message) {
    switch (message.kind) {
      case "ready":
        this.isVisible = message.visible;
        this.acknowledged = this.sent;
        this.wake();
        this.act(() => this.sampled(true));
        break;
      case "visible":
        this.isVisible = message.visible;
        this.wake();
        break;
      case "ack":
        if (message.frame <= this.sent) this.acknowledged = Math.max(this.acknowledged, message.frame);
        this.wake();
        break;
      case "play":
        this.play();
        break;
      case "pause":
        this.leave("paused");
        this.act(() => this.sampled(true));
        break;
      case "stop":
        this.leave("stopped");
        this.act(() => this.sampled(true));
        break;
      case "step":
        this.leave("paused");
        this.tell({ error: null });
        this.act(() => this.makeFrame(message.steps));
        break;
      case "reset":
        this.act(() => this.startAgain());
        break;
      case "speed":
        this.stepsPerFrame = message.steps;
        break;
      case "pointer":
        this.point(message);
        break;
      case "change":
        this.change(message);
        break;
      case "run":
        this.act(() => this.makeFrame(message.steps)); // For tests and pages around this one.
        break;
      case "device":
        this.act(() => this.moveTo(message.device));
        break;
      case "hover":
        this.after(() => {
          const { view, place } = message;
          this.post({ kind: "hovered", view, words: this.frames.wordsAt(...place) }, []);
        });
        break;
      case "ping":
        this.post({ kind: "pong", works: true }, []); // For who wants to know whether a step is stuck.
        break;
      case "read":
        this.after(async () => {
          if (this.isOnGpu) await this.gpu.refresh([], [message.field]);
          const found = this.program.read(message.field);
          this.post({ kind: "field", field: message.field, step: this.steps, number: message.number }, [found]);
        });
        break;
      default:
        this.obeyed(this.frames.obey(message));
    }
  }

  /** What is shown has changed, and these traits of the view with it; or nothing has. */
  obeyed(traits) {
    if (!traits) return;
    this.tell(traits);
    if (this.state !== "playing") this.act(() => this.sampled(true));
  }

  tell(values) {
    if ("state" in values) this.state = values.state;
    this.post({ kind: "traits", values }, []);
  }

  /** Run `job` after those before it, also where one of them has failed. */
  after(job) {
    this.jobs = this.jobs.then(job, job);
    return this.jobs;
  }

  /** Run `job` after those before it and send its frame; false, the error shown and the view stopped, if it fails. */
  act(job) {
    return this.after(async () => {
      try {
        this.send(await job());
        return true;
      } catch (error) {
        this.runs += 1;
        if (this.gpu?.isLost) this.loseGpu();
        this.tell({ state: "stopped", error: described(error) });
        return false;
      } finally {
        const text = this.program.takePrints();
        if (text) this.post({ kind: "prints", text }, []);
      }
    });
  }

  leave(state) {
    this.runs += 1;
    this.tell({ state });
    this.wake();
  }

  play() {
    if (this.state === "playing") return;
    this.runs += 1;
    this.tell({ state: "playing", error: null });
    this.drive(this.runs);
  }

  async drive(run) {
    let due = performance.now();
    while (run === this.runs) {
      await this.credit();
      if (run !== this.runs) return;
      due = Math.max(due, performance.now() - FRAME_MILLISECONDS / 4) + FRAME_MILLISECONDS;
      if (!(await this.act(() => this.makeFrame(this.stepsPerFrame)))) return;
      await new Promise((go) => setTimeout(go, Math.max(0, due - performance.now())));
    }
  }

  /** Resolved once the page takes the next frame, or what runs is to end. */
  async credit() {
    const run = this.runs;
    while (run === this.runs && !(this.isVisible && this.sent - this.acknowledged < WINDOW))
      await new Promise((go) => this.waiting.push(go));
  }

  wake() {
    for (const go of this.waiting.splice(0)) go();
  }

  /** Advance `steps` steps, with breaks in which the page's messages are handled, and make a frame. */
  async makeFrame(steps) {
    const run = this.runs;
    await this.tellPointer();
    let begin = performance.now();
    for (let at = 0; at < steps; at += 1) {
      if (performance.now() - begin > PATIENCE_MILLISECONDS) {
        await new Promise((go) => setTimeout(go));
        begin = performance.now();
      }
      if (run !== this.runs) break;
      if (this.view.canStep) await this.run("step");
      this.steps += 1;
    }
    return this.sampled(false);
  }

  async startAgain() {
    if (this.program.programs.includes("reset")) await this.run("reset");
    else {
      this.program.restore();
      if (this.gpu) this.gpu.newest = "host";
      await this.applyChanges(this.changed.values()); // All memory is as it was at first.
    }
    this.steps = 0;
    this.history.clear();
    return this.sampled(true);
  }

  /** A frame after something else than a step has changed the state: the sample of this step is taken again. */
  renewed() {
    if (this.history.latest?.[0] === this.steps) this.history.forgetLatest();
    return this.sampled(true);
  }

  async sampled(whole) {
    if (this.isOnGpu) await this.gpu.refresh(this.shown.programs, this.shown.fields);
    const { message, buffers } = this.frames.capture(this.steps);
    if (this.view.plots.length && this.history.latest?.[0] !== this.steps)
      this.history.append([this.steps, ...(await this.quantities())]);
    const kept = this.frames.kept(whole);
    const rows = this.view.plots.length ? (whole ? this.history.rows() : [this.history.latest]) : [];
    const samples = bytesOf(Float64Array.from(rows.flat()));
    return {
      message: { ...message, ...kept.message, step: this.steps, whole },
      buffers: [...buffers, ...kept.buffers, samples],
    };
  }

  async quantities() {
    const found = [];
    for (const name of this.view.plots) found.push(Number(await this.run(name)));
    return found;
  }

  // Where it runs.

  /** Run a function with these parameters, on the GPU or as WebAssembly. */
  run(name, parameters = {}) {
    return this.isOnGpu ? this.gpu.run(name, parameters) : this.program.run(name, parameters);
  }

  call(name, ...numbers) {
    return this.run(name, this.program.parametersOf(name, numbers));
  }

  /** Run what computes something to be shown, which a GPU has done before. */
  show(name) {
    if (this.isOnGpu && this.gpu.newest === "device") return;
    this.program.run(name);
    if (this.isOnGpu) this.gpu.newest = "host";
  }

  async moveTo(device) {
    if (this.isOnGpu && device !== "GPU") {
      await this.gpu.toHost();
      this.isOnGpu = false;
    } else if (this.gpu && device === "GPU" && !this.isOnGpu) {
      this.gpu.newest = "host";
      this.isOnGpu = true;
    }
    this.tell({ device: this.isOnGpu ? "GPU" : "CPU" });
    return this.sampled(true);
  }

  /** The GPU does not answer any more, and what was only there is gone. */
  loseGpu() {
    [this.gpu, this.isOnGpu, this.steps] = [null, false, 0];
    this.program.restore();
    this.history.clear();
    this.tell({ devices: [], device: "CPU" });
  }

  /** Go to the GPU if the page has shaders, this browser takes them, and a picture is done sooner there. */
  async tryGpu() {
    let gpu = null;
    try {
      gpu = this.view.canStep ? await GpuProgram.open(this.program) : null;
    } catch {
      // A shader that this browser's compiler does not take: WebAssembly does it.
    }
    if (!gpu) return;
    await this.after(async () => {
      const kept = this.program.keep();
      const picture = async () => {
        for (let at = 0; at < this.stepsPerFrame; at += 1) await this.run("step");
        if (this.isOnGpu) await gpu.refresh(this.shown.programs, this.shown.fields);
      };
      let isFaster = false;
      try {
        const onCpu = await shortest(picture);
        [this.gpu, this.isOnGpu] = [gpu, true];
        await picture();
        isFaster = (await shortest(picture)) < onCpu;
      } catch {
        this.gpu = null; // What fails in a trial is not offered.
      }
      this.program.putBack(kept);
      gpu.newest = "host";
      this.program.takePrints();
      this.isOnGpu = isFaster && this.gpu !== null;
      if (this.gpu) this.tell({ devices: ["CPU", "GPU"], device: this.isOnGpu ? "GPU" : "CPU" });
    });
  }

  send({ message, buffers }) {
    this.sent += 1;
    this.post({ kind: "frame", frame: this.sent, ack: true, ...message }, buffers);
  }

  point({ phase, place }) {
    if (!this.view.pointer) return;
    this.pointing.add(phase, place);
    if (this.state === "playing" || this.isPointed) return;
    this.isPointed = true;
    this.act(async () => {
      this.isPointed = false;
      await this.tellPointer();
      return this.renewed();
    });
  }

  async tellPointer() {
    if (!this.view.pointer) return;
    for (const pointer of this.pointing.take((...place) => this.frames.pick(...place))) {
      const element = pointer.element === null ? [] : [pointer.element].flat();
      const name = element.length ? this.view.pointer.on : this.view.pointer.beside;
      if (name) await this.call(name, ...pointer.position, ...pointer.movement, ...element, pointer.pressed);
    }
  }

  /** A control says something; while a change is still waiting, later ones take its place, but each press counts. */
  change({ control, choice, numbers }) {
    const { kind } = this.view.controls[control];
    const isFirst = !this.changes.length;
    if (kind !== "button") {
      this.changes = this.changes.filter((one) => one.control !== control);
      this.changed.set(control, { control, choice, numbers });
    }
    this.changes.push({ control, choice, numbers });
    if (!isFirst) return;
    this.act(async () => {
      await this.applyChanges(this.changes.splice(0));
      return this.renewed();
    });
  }

  async applyChanges(changes) {
    for (const { control, choice, numbers } of changes) {
      const { field, programs } = this.view.controls[control];
      if (!field) {
        await this.call(programs[choice], ...numbers);
        continue;
      }
      if (this.isOnGpu) await this.gpu.toHost();
      const { shape } = this.program.field(field);
      numbers.forEach((number, k) => this.program.write(field, shape.length ? [k] : [], number));
      if (this.isOnGpu) this.gpu.newest = "host";
    }
  }
}

/** The programs and the fields that the sources in `look` name. */
function sourcesIn(look) {
  const [programs, fields] = [new Set(), new Set()];
  const visit = (value) => {
    if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) return;
    if (typeof value.program === "string") programs.add(value.program);
    if (typeof value.field === "string") fields.add(value.field);
    Object.values(value).forEach(visit);
  };
  visit(look);
  return { programs: [...programs], fields: [...fields] };
}

/** Milliseconds that something takes: of three times the shortest, or of those that fit into as long as they may be. */
async function shortest(act) {
  const begin = performance.now();
  let least = Infinity;
  for (let count = 0; count < 3 && performance.now() - begin < TRIAL_MILLISECONDS; count += 1) {
    const begun = performance.now();
    await act();
    least = Math.min(least, performance.now() - begun);
  }
  return least;
}

/** What the page gets of an error: the user's line, if it is known, and the message. */
function described(error) {
  const { message, what, file, line, column, source } = error;
  return {
    message: String(what ?? message ?? error),
    file: file ?? "",
    line: line ?? 0,
    column: column ?? 0,
    source: source ?? "",
  };
}

/** Serve the page: its first message brings the program and the view. */
function serve() {
  let simulation = null;
  const waiting = [];
  const post = (message, buffers) => {
    const parts = buffers.map((part) => (ArrayBuffer.isView(part) ? part : new DataView(part)));
    postMessage({ message, buffers: parts }, [...new Set(parts.map((part) => part.buffer))]);
  };
  onmessage = async ({ data }) => {
    if (simulation) simulation.obey(data);
    else if (data.kind === "begin") {
      try {
        const program = await Program.open(data.program, { mostBytes: data.view.mostBytes });
        simulation = new Simulation(program, data.view, post);
        for (const message of waiting.splice(0)) simulation.obey(message);
        if (typeof GpuProgram !== "undefined") simulation.tryGpu();
      } catch (error) {
        post({ kind: "traits", values: { state: "stopped", error: described(error) } }, []);
      }
    } else waiting.push(data);
  };
}
