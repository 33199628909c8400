// What the kernel is to a live view, in a Worker of a page: it advances the program, makes frames as the page takes
// them, and tells the user's functions what the pointer and the sliders do. The rules are those of
// `viz/live/simulation.py`, `viz/live/pointer.py` and `FrameCredits`.

const FRAME_MILLISECONDS = 1000 / 60; // A page paints no more often than this.
const WINDOW = 3; // Frames that may be on their way.
const PATIENCE_MILLISECONDS = 25; // After so long, steps make way for what the page says.
const FRAMES_OF = {}; // What makes the frames of a view, by its kind.

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
  /** What the user's function is told now: each message, or that a button is still held. */
  take(pick) {
    const told = [];
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
      told.push(pointer);
      this.held = pointer.pressed ? pointer : null;
    }
    if (!told.length && this.held) {
      this.held = { ...this.held, movement: this.held.position.map(() => 0), pressed: true };
      told.push(this.held);
    }
    return told;
  }
}

/**
 * A simulation: `program` runs what was captured, `view` says what it is of and how it is shown, `post(message,
 * buffers)` reaches the page.
 */
class Simulation {
  constructor(program, view, post) {
    Object.assign(this, { program, view, post });
    this.frames = new FRAMES_OF[view.kind](new Sources(program), view.look, view.traits);
    this.history = new History(1 + view.plots.length);
    this.pointing = new PointerQueue();
    this.state = "paused";
    this.stepsPerFrame = view.traits.steps_per_frame;
    this.steps = 0;
    [this.sent, this.acknowledged, this.isVisible] = [0, 0, false];
    this.jobs = Promise.resolve();
    this.run = 0; // Goes up when what runs is to end.
    this.waiting = []; // Those that wait until the page takes a frame.
    this.changes = new Map(); // Values of sliders that wait,
    this.changed = new Map(); // and those that were taken.
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
      case "ping":
        this.post({ kind: "pong" }, []); // For who wants to know whether a step is stuck.
        break;
      case "read":
        this.after(() => {
          const found = this.program.read(message.field);
          this.post({ kind: "field", field: message.field, step: this.steps, number: message.number }, [found]);
        });
        break;
      default:
        if (this.frames.obey(message) && this.state !== "playing") this.act(() => this.sampled(true));
    }
  }

  tell(values) {
    if ("state" in values) this.state = values.state;
    this.post({ kind: "traits", values }, []);
  }

  /** Run `job` after those before it. */
  after(job) {
    this.jobs = this.jobs.then(job);
    return this.jobs;
  }

  /** Run `job` after those before it and send its frame; false, the error shown and the view stopped, if it fails. */
  act(job) {
    return this.after(async () => {
      try {
        this.send(await job());
        return true;
      } catch (error) {
        this.run += 1;
        this.tell({ state: "stopped", error: described(error) });
        return false;
      } finally {
        const text = this.program.takePrints();
        if (text) this.post({ kind: "prints", text }, []);
      }
    });
  }

  leave(state) {
    this.run += 1;
    this.tell({ state });
    this.wake();
  }

  play() {
    if (this.state === "playing") return;
    this.run += 1;
    this.tell({ state: "playing", error: null });
    this.drive(this.run);
  }

  async drive(run) {
    let due = performance.now();
    while (run === this.run) {
      await this.credit();
      if (run !== this.run) return;
      due = Math.max(due, performance.now() - FRAME_MILLISECONDS / 4) + FRAME_MILLISECONDS;
      if (!(await this.act(() => this.makeFrame(this.stepsPerFrame)))) return;
      await new Promise((go) => setTimeout(go, Math.max(0, due - performance.now())));
    }
  }

  /** Resolved once the page takes the next frame, or what runs is to end. */
  async credit() {
    const run = this.run;
    while (run === this.run && !(this.isVisible && this.sent - this.acknowledged < WINDOW))
      await new Promise((go) => this.waiting.push(go));
  }

  wake() {
    for (const go of this.waiting.splice(0)) go();
  }

  /** Advance `steps` steps, with breaks in which the page is heard, and make a frame. */
  async makeFrame(steps) {
    const { run } = this;
    this.tellPointer();
    let begin = performance.now();
    for (let at = 0; at < steps; at += 1) {
      if (performance.now() - begin > PATIENCE_MILLISECONDS) {
        await new Promise((go) => setTimeout(go));
        begin = performance.now();
      }
      if (run !== this.run) break;
      if (this.view.canStep) this.program.step();
      this.steps += 1;
    }
    return this.sampled(false);
  }

  startAgain() {
    this.program.reset();
    if (!this.program.programs.includes("reset")) this.applyChanges(this.changed); // All memory is as it was at first.
    this.steps = 0;
    this.history.clear();
    return this.sampled(true);
  }

  /** A frame after something else than a step has changed the state: the sample of this step is taken again. */
  renewed() {
    if (this.history.latest?.[0] === this.steps) this.history.forgetLatest();
    return this.sampled(true);
  }

  sampled(whole) {
    const { message, buffers } = this.frames.capture(this.steps);
    if (this.view.plots.length && this.history.latest?.[0] !== this.steps)
      this.history.append([this.steps, ...this.view.plots.map((name) => Number(this.program.run(name)))]);
    const kept = this.frames.kept(whole);
    const rows = this.view.plots.length ? (whole ? this.history.rows() : [this.history.latest]) : [];
    const samples = bytesOf(Float64Array.from(rows.flat()));
    return {
      message: { ...message, ...kept.message, step: this.steps, whole },
      buffers: [...buffers, ...kept.buffers, samples],
    };
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
    this.act(() => {
      this.isPointed = false;
      this.tellPointer();
      return this.renewed();
    });
  }

  tellPointer() {
    if (!this.view.pointer) return;
    for (const pointer of this.pointing.take((...place) => this.frames.pick(...place))) {
      const element = pointer.element === null ? [] : [pointer.element].flat();
      const name = element.length ? this.view.pointer.on : this.view.pointer.beside;
      if (name) this.program.call(name, ...pointer.position, ...pointer.movement, ...element, pointer.pressed);
    }
  }

  /** A slider has been moved; while a change is still waiting, later ones take its place. */
  change({ slider, value }) {
    const isFirst = !this.changes.size;
    this.changes.set(slider, value);
    if (!isFirst) return;
    this.act(() => {
      const changes = [...this.changes];
      this.changes.clear();
      for (const [slider, value] of changes) this.changed.set(slider, value);
      this.applyChanges(changes);
      return this.renewed();
    });
  }

  applyChanges(changes) {
    for (const [number, value] of changes) {
      const { field, program } = this.view.sliders[number];
      if (field) this.program.write(field, [], value);
      else this.program.call(program, value);
    }
  }
}

/** What the page is told of an error: the user's line, if it is known, and the message. */
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
      } catch (error) {
        post({ kind: "traits", values: { state: "stopped", error: described(error) } }, []);
      }
    } else waiting.push(data);
  };
}
