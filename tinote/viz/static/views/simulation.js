// The controls of a running simulation, its status line, its plot and its error.

const PACE = 1500; // Milliseconds over which the rate of steps is taken.
const REST = 250; // Milliseconds after which a pointer that does not move asks what is there.
const SPEEDS = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000];
const SIGNS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M3.5 2.5h3.4v11H3.5zM9.1 2.5h3.4v11H9.1z",
  step: "M3 2.5v11l6.5-5.5zM10.5 2.5H13v11h-2.5z",
  reset:
    "M8 2.6a5.4 5.4 0 1 0 5.3 6.4h-1.9A3.6 3.6 0 1 1 8 4.4c1 0 1.9.4 2.5 1.1L8.6 7.4h5V2.4" +
    "L11.8 4.2A5.4 5.4 0 0 0 8 2.6z",
  stop: "M3 3h10v10H3z",
  save:
    "M5 3.5 6 2h4l1 1.5h2.5v9.5h-11V3.5zM8 5.2a2.9 2.9 0 1 0 0 5.8 2.9 2.9 0 0 0 0-5.8z" +
    "m0 1.5a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8z",
  record: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z",
  more: "M7.1 2h1.8v6.2l2.2-2.2 1.3 1.3L8 11.7 3.6 7.3 4.9 6l2.2 2.2zM2.5 12.4h11v1.8h-11z",
  full: "M2 2h5v1.6H3.6V7H2zM9 2h5v5h-1.6V3.6H9zM2 9h1.6v3.4H7V14H2zM12.4 9H14v5H9v-1.6h3.4z",
  fit: "M2 2h4v1.6H3.6V6H2zM10 2h4v4h-1.6V3.6H10zM2 10h1.6v2.4H6V14H2zM12.4 10H14v4h-4v-1.6h2.4zM6 6h4v4H6z",
  gif: "M1 4.5h4.2V6H2.6v4h1V8.9H3V7.5h2.2v4H1zM6.5 4.5h1.7v7H6.5zM9.7 4.5H15V6h-3.7v1.3h3.2v1.5h-3.2v2.7H9.7z",
};

const sign = (name) => draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, draw("path", { d: SIGNS[name] }));

// What a view is laid out by: it is made anew where one of these changes.
const SIZES = ["width", "height", "chart_height"];
const LAYOUT = [...SIZES, "colorbar", "color_label", "chart", "axes_shown", "norm", "label", "timeline"];

/** A view that `make({ model, el })` makes, anew where one of `LAYOUT` changes, or of the traits that are `named`. */
function laidOut(make, named = []) {
  return {
    render({ model, el }) {
      let dispose = make({ model, el });
      const unwatch = watchTraits(model, [...LAYOUT, ...named], () => {
        dispose();
        dispose = make({ model, el });
      });
      return () => {
        unwatch();
        dispose();
      };
    },
  };
}

/** A count with its noun, in the singular or plural. */
function counted(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** The name of a quantity in the legend of a chart. */
const nameIn = ({ x, right }, name) => {
  if (name === x) return `${name} (across)`;
  return right.includes(name) ? `${name} (right)` : name;
};

/** Hand `bytes` to whoever looks at the page as a file of `model`. */
function download(model, ending, type, bytes) {
  const name = (model.get("name") || "simulation").replace(/[^\p{L}\p{N} ._-]+/gu, "-");
  const href = URL.createObjectURL(new Blob([bytes], { type }));
  const link = make("a", { href, download: `${name}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** The samples of a plot as `History.csv` of `viz/draw/chart.py` writes them. */
function csvOf(history, names, dt) {
  const quoted = (name) => (/[,"\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const head = ["step", ...(dt ? ["time"] : []), ...names].map(quoted);
  const rows = history.rows().map(([step, ...values]) => [step, ...(dt ? [step * dt] : []), ...values]);
  return [head, ...rows, ""].map((row) => [row].flat().join(",")).join("\n");
}

/** A button that opens a menu of `choices`, names with what they do, and closes it again. */
function menuButton(button, choices) {
  const list = make("div", { class: "tinote-menu", role: "menu", hidden: true });
  const open = (isOpen) => {
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  const acted = (act) => () => {
    open(false);
    button.focus();
    act();
  };
  for (const [name, act] of choices)
    list.append(make("button", { type: "button", role: "menuitem", onclick: acted(act) }, name));
  const node = make("span", { class: "tinote-more-files" }, button, list);
  open(false);
  button.setAttribute("aria-haspopup", "menu");
  button.addEventListener("click", () => {
    open(list.hidden);
    if (!list.hidden) list.firstChild.focus();
  });
  node.addEventListener("keydown", (event) => {
    const at = [...list.children].indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") acted(() => {})();
    else if (step && at >= 0) list.children[(at + step + list.children.length) % list.children.length].focus();
    else return;
    event.preventDefault();
  });
  node.addEventListener("focusout", ({ relatedTarget }) => node.contains(relatedTarget) || open(false));
  return node;
}

/**
 * Tell `model` what the pointer does on `stage`: presses that it `takes`, moves while a button is held, releases.
 * Touches do not scroll the page there.
 */
function sendPointer(model, stage, takes) {
  stage.classList.add("tinote-touchable");
  const tell = (phase, event) => say(model, { kind: "pointer", phase, place: placeOn(stage, event) });
  let held = null;
  let sentAt = 0;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || held !== null || !takes(event)) return;
    event.preventDefault(); // Do not select text next to the stage.
    held = event.pointerId;
    stage.setPointerCapture(held);
    tell("press", event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (event.pointerId !== held || event.timeStamp - sentAt < 15) return; // No more often than frames come.
    sentAt = event.timeStamp;
    tell("move", event);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, (event) => {
      if (event.pointerId !== held) return;
      held = null;
      tell("release", event);
    });
  }
}

/** A handle at the corner of `stage`: `get()` gives the factor by which that is enlarged, `set(factor)` changes it. */
function gripOf(stage, get, set) {
  const label = "Resize: drag, or press the arrow keys; double-click for the own size";
  const grip = make("button", { type: "button", class: "tinote-grip", "aria-label": label, title: label });
  const to = (factor) => set(Math.min(Math.max(factor, 0.3), 4));
  let held = null;
  grip.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, width: stage.offsetWidth, factor: get() };
    grip.setPointerCapture(event.pointerId);
  });
  grip.addEventListener("pointermove", ({ clientX }) => {
    if (held) to((held.factor * (held.width + clientX - held.x)) / held.width);
  });
  for (const end of ["pointerup", "pointercancel"]) grip.addEventListener(end, () => (held = null));
  grip.addEventListener("dblclick", () => to(1));
  grip.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1.1, ArrowDown: 1.1, ArrowLeft: 1 / 1.1, ArrowUp: 1 / 1.1 }[event.key];
    if (!by) return;
    event.preventDefault();
    to(get() * by);
  });
  return grip;
}

/** Tell `model` where `stage` is clicked: what makes the frames says what is there. */
function pickOnClick(model, stage) {
  let begin = null;
  stage.addEventListener("pointerdown", ({ clientX, clientY }) => (begin = [clientX, clientY]));
  stage.addEventListener("click", (event) => {
    if (!begin || Math.hypot(event.clientX - begin[0], event.clientY - begin[1]) > 4) return; // It was a drag.
    say(model, { kind: "pick", place: placeOn(stage, event) });
  });
}

/**
 * A view of a simulation in `el`. `stage` is what the state is painted on, or null for a plot alone, `show(message,
 * buffers)` paints a frame on it and returns words for the status line, `repaint()` paints the last one again in the
 * page's present theme, and says whether that has asked for a frame. `keep(message, buffers, isShown)` takes every
 * frame, also one that is not painted. Where a frame has to be decoded first, `show` gives a promise of the function
 * that paints it and returns the words. The last buffer of a frame holds the samples of the plot. `remember(message,
 * buffers)` gives what shows a frame again, once it has been kept: its arrays as `parts`, and `show()`; null for one
 * that cannot be. `resolve(scale)` paints the stage with so many pixels to a CSS pixel. The `bar` of
 * colours stands between the stage and the buttons. Of presses on the stage the simulation gets those for which
 * `takes(event)` holds. `read(place)` tells in words what is there, or gives nothing where what makes the frames is to
 * be asked, once a mouse has rested for `wait` milliseconds. The kernel knows this copy of the view as `view`.
 */
function simulationView({
  model,
  el,
  stage,
  bar = null,
  show,
  keep = () => {},
  remember,
  repaint,
  resolve = () => {},
  takes = () => true,
  read,
  wait = 0,
  view = newName(),
}) {
  const names = model.get("series");
  const canStep = model.get("can_step");
  const history = new History(1 + names.length);
  const frame = stage && framed(model, stage);
  const width = model.get("width") + (frame?.wide ?? 0);
  el.classList.add("tinote-view");
  el.style.setProperty("--tinote-width", `${width + 8}px`); // With its padding.
  keepKeys(el);

  const button = (name, label, act) =>
    make(
      "button",
      { type: "button", class: `tinote-${name}`, "aria-label": label, title: label, onclick: act },
      sign(name),
    );
  const command =
    (kind, more = () => ({})) =>
    () => {
      showPresent();
      say(model, { kind, ...more() });
    };
  const run = button("play", "Play", () =>
    command(past === null && model.get("state") === "playing" ? "pause" : "play")(),
  );
  // The slider's value may still be waiting here for the previous one to be acknowledged.
  const step = button(
    "step",
    "Step: advance one frame",
    command("step", () => ({ steps: model.get("steps_per_frame") })),
  );
  const reset = button("reset", "Reset: back to the start", command("reset"));
  const stop = button("stop", "Stop: end the run", command("stop"));
  const fit = button("fit", "Fit: show everything", () => {
    if (zoomOf(stage).isWhole) say(model, { kind: "fit" });
    else stage.dispatchEvent(new MouseEvent("dblclick"));
  });
  let isOutside = false; // Whether something is, or not all of the stage is shown.
  const showFit = () => (fit.hidden = !isOutside && (!stage || zoomOf(stage).isWhole));
  showFit();
  const initial = model.get("steps_per_frame");
  const speeds = [...new Set([...SPEEDS, initial])].sort((a, b) => a - b);
  const speedText = make("output", { class: "tinote-speed-text" });
  const slider = make("input", {
    type: "range",
    min: 0,
    max: speeds.length - 1,
    step: 1,
    "aria-label": "Speed: steps per frame",
    title: "Speed: steps per frame",
    oninput: () => {
      model.set("steps_per_frame", speeds[Number(slider.value)]);
      model.save_changes();
    },
  });
  const controls = make(
    "div",
    { class: "tinote-controls", role: "toolbar", "aria-label": "Simulation controls" },
    ...(canStep ? [run, step] : []),
  );
  if (model.get("can_reset")) controls.append(reset);
  const film = model.get("film") ? "Record a video" : "Record a GIF";
  const record = button("record", film, () => say(model, { kind: "record", page: view }));
  const gif =
    model.get("film") && button("gif", "Record a GIF", () => say(model, { kind: "record", as: "gif", page: view }));
  // What the page alone knows, such as the past, and what is larger, it draws itself.
  const drawn = (wanted) => {
    refine(wanted);
    pictureOf(model, el).toBlob((blob) => download(model, "png", blob.type, blob));
    magnify(factor);
  };
  const isKernels = () => past === null && !model.isLocal && (!stage || zoomOf(stage).isWhole);
  const save = button("save", "Save a picture", () =>
    isKernels() ? say(model, { kind: "snapshot", page: view }) : drawn(1),
  );
  const csv = () => download(model, "csv", "text/csv", csvOf(history, names, model.get("chart").dt));
  const more = menuButton(
    button("more", "Save as…", () => {}),
    [
      ["Picture, 2×", () => drawn(2)],
      ...(names.length ? [["Plot as CSV", csv]] : []),
      ...(model.isLocal ? [] : [["Page that runs", () => say(model, { kind: "page", page: view })]]),
    ],
  );
  const full = button("full", "Full screen", () =>
    document.fullscreenElement === el ? document.exitFullscreen() : el.requestFullscreen(),
  );
  full.hidden = !document.fullscreenEnabled;
  const speed = make("label", { class: "tinote-speed" }, slider, speedText);
  const recorders = [record, gif].filter((one) => one && canStep);
  controls.append(
    ...(canStep ? [stop, fit, speed] : [fit]),
    make("span", { class: "tinote-files" }, ...recorders, save, more, full),
  );
  const status = make("div", { class: "tinote-status" });
  const kept = make("div", { class: "tinote-kept" });
  const refused = make("div", { class: "tinote-kept", role: "status" }); // Why there is no file.
  const announce = make("div", { class: "tinote-announce", role: "status" });
  const alert = make("div", { class: "tinote-error", role: "alert", hidden: true });
  const group = make("div", {
    class: "tinote-group",
    role: "group",
    "aria-label": model.get("label"),
    style: `max-width:${width}px;contain-intrinsic-inline-size:${width}px`,
  });
  if (stage) group.append(frame.node);
  if (stage && model.get("axes_shown")?.ranges)
    zoomStage(stage, model.get("can_point"), () => {
      showFit();
      repaint();
      drawAround();
    });
  // What is there now, asked one by one; of a pointer that rests no more often than `REST` says.
  let asked = { place: null, at: 0, waits: false };
  const ask = (place) => {
    const words = read(zoomOf(stage).place(place));
    if (words !== undefined || past !== null) return words ?? "";
    if (asked.waits || (asked.place === place && performance.now() - asked.at < REST)) return undefined;
    asked = { place, at: performance.now(), waits: true };
    say(model, { kind: "hover", view, place: zoomOf(stage).place(place) });
    return undefined;
  };
  const hovered = ({ words }) => {
    asked.waits = false;
    if (hover.at() === asked.place) hover.tell(words);
    else hover.again();
  };
  const hover = stage && hoverTip(stage, ask, wait);
  if (hover) frame.node.append(hover.tip);
  if (bar) group.append(bar.node);
  if (stage && model.get("can_point"))
    sendPointer(model, stage, (event) => {
      if (!takes(event)) return false;
      showPresent();
      return true;
    });

  // The frames that were shown. What goes back pauses, and what goes on does so from the present.
  const timeline = new Timeline(canStep ? 1e6 * (model.get("timeline") ?? 0) : 0);
  remember ??= (message, buffers) => {
    const parts = ownParts(buffers.slice(0, -1));
    return { parts, show: () => show(message, parts) };
  };
  let past = null; // The number of the frame that is shown again, or null for the present.
  let owed = false; // Whether a frame comes that is no news: the last one of a run, or one in another theme.
  let painting = 0;
  const paintAgain = (frame) => {
    painting += 1;
    const mine = painting;
    const shown = frame.show();
    if (!(shown instanceof Promise)) describe(frame.step, shown);
    else shown.then((lay) => mine === painting && describe(frame.step, lay()));
  };
  const showPresent = () => {
    if (past === null) return;
    past = null;
    paintAgain(timeline.at(timeline.last));
  };
  const lookBack = (number) => {
    if (model.get("state") === "playing") say(model, { kind: "pause" });
    past = number < timeline.last ? Math.max(number, timeline.first) : null;
    paintAgain(timeline.at(past ?? timeline.last));
  };
  const earlier = timelineRow(lookBack);
  const line = make("div", { class: "tinote-line" }, status);
  if (timeline.limit > 0) {
    group.append(earlier.node);
    line.append(earlier.text);
  }
  group.append(controls, line, kept, refused, announce);

  const chart = make("canvas", { class: "tinote-chart", role: "img" });
  const values = names.map(() => make("span", { class: "tinote-value" }));
  const chartLook = model.get("chart"); // `ChartLook` of `viz/draw/chart.py`.
  const keys = names.map((name, index) =>
    make("span", { class: "tinote-key" }, make("i", {}), `${nameIn(chartLook, name)} `, values[index]),
  );
  let nearest = () => null; // The sample at a place of the chart,
  let pointed = null; // and the one that the pointer is at.
  if (names.length) {
    const tip = hoverTip(chart, (place) => {
      const found = nearest(place);
      if (found !== pointed) {
        pointed = found;
        drawPlot();
      }
      return found ? sampleText(found) : "";
    });
    chart.addEventListener("pointerleave", () => {
      pointed = null;
      drawPlot();
    });
    // A click takes the timeline there.
    chart.addEventListener("click", (event) => {
      const found = nearest(placeIn(chart, event));
      if (found && timeline.limit > 0 && timeline.frames.length) lookBack(timeline.nearest(found[0]));
    });
    group.append(
      make("div", { class: "tinote-legend" }, ...keys),
      make("div", { class: "tinote-noticed" }, chart, tip.tip),
    );
  }
  const sampleText = (row) => {
    const at = chartLook.dt ? [`${chartLook.x_label || "time"} ${numberText(row[0] * chartLook.dt)}`] : [];
    const step = `step ${row[0].toLocaleString("en")}`;
    return [step, ...at, ...names.map((name, index) => `${name} ${numberText(row[index + 1])}`)].join(" · ");
  };
  el.append(group, alert); // An error has more to say than a small view is wide.

  // How much larger than it was made the view is shown, and how finely.
  let factor = 1;
  let fineness = screenScale();
  const refine = (wanted) => {
    fineness = wanted;
    resolve(wanted);
    drawPlot();
  };
  const magnify = (wanted) => {
    factor = wanted;
    const across = model.get("width") * factor + (frame?.wide ?? 0);
    group.style.maxWidth = `${across}px`;
    el.style.setProperty("--tinote-width", `${across + 8}px`); // With its padding.
    refine(screenScale() * Math.max(factor, 1));
    if (stage) stage.style.width = `${model.get("width") * factor}px`;
    drawAround();
  };
  if (stage) frame.node.append(gripOf(stage, () => factor, magnify));
  const onFull = () => {
    const isFull = document.fullscreenElement === el;
    full.title = isFull ? "Leave the full screen" : "Full screen";
    full.setAttribute("aria-label", full.title);
    if (!isFull) {
      magnify(1);
      return;
    }
    const beside = group.offsetHeight - (stage?.offsetHeight ?? 0) + 24;
    const [across, down] = [(innerWidth - 24 - (frame?.wide ?? 0)) / model.get("width"), innerHeight - beside];
    magnify(Math.max(0.2, stage ? Math.min(across, down / model.get("height")) : across));
  };
  el.addEventListener("fullscreenchange", onFull);

  const sample = () => (past === null ? history.latest : timeline.at(past).row);
  // A narrow page gets a narrow chart, not small letters.
  const roomAcross = () => {
    const widest = model.get("width") * factor + (frame?.wide ?? 0);
    return Math.min(widest, group.clientWidth || widest);
  };
  const drawPlot = () => {
    if (!names.length) return;
    const dark = isDark(el);
    keys.forEach((key, index) => {
      if (names[index] === chartLook.x) key.firstChild.style.visibility = "hidden";
      key.firstChild.style.setProperty("background", SERIES_COLORS[dark ? "dark" : "light"][index]);
    });
    const height = model.get("chart_height") - 20; // The legend above the chart takes the rest.
    const across = roomAcross();
    const form = `${across} × ${fineness}`;
    if (chart.dataset.form !== form) fitCanvas(chart, across, height, fineness);
    chart.dataset.form = form;
    const latest = sample();
    const marked = pointed ?? (past === null ? null : latest);
    nearest = drawChart(chart, { history, names, width: across, height, look: chartLook, dark, marked });
    values.forEach((value, index) => {
      value.textContent = latest ? numberText(latest[index + 1]) : "";
    });
  };
  const describePlot = () => {
    const latest = sample();
    const now = latest
      ? names.map((name, index) => `${name} ${numberText(latest[index + 1])}`).join(", ")
      : "no values yet";
    chart.setAttribute("aria-label", `Plot over the step number: ${now}`);
  };
  let said = null; // What the status line tells of the frame that is shown.
  let recorded = 0; // Frames that came since a recording has begun.
  let pace = []; // Of the last second or so: when a frame was shown, and of which step.
  /** How fast the simulation runs, once that is known. */
  const paceText = () => {
    if (!said || past !== null || model.get("state") !== "playing") pace = [];
    else pace = [...pace.filter(([at]) => at > performance.now() - PACE), [performance.now(), said.step]];
    if (pace.length < 3) return [];
    const [[begin, first], [end, last]] = [pace[0], pace[pace.length - 1]];
    if (end - begin < PACE / 2 || last <= first) return [];
    return [`${Number(((1000 * (last - first)) / (end - begin)).toPrecision(2)).toLocaleString("en")} steps/s`];
  };
  const showStatus = () => {
    if (!said) return;
    const recording = model.get("recording") ? [`recording, ${counted(recorded, "frame", "frames")}`] : [];
    const hit = model.get("picked") ?? null;
    const picked = hit === null ? [] : [`picked ${[hit].flat().join(", ")}`];
    const steps = canStep ? [`step ${said.step.toLocaleString("en")}`] : [];
    status.textContent = [...steps, ...said.words, ...paceText(), ...picked, ...recording].join(" · ");
  };
  const describe = (step, words) => {
    said = { step, words };
    showStatus();
    el.dataset.step = String(step);
    el.toggleAttribute("data-past", past !== null);
    earlier.show(timeline, past);
    hover?.again();
    drawPlot();
    if (model.get("state") !== "playing") describePlot();
  };
  let wasPlaying = false;
  let isThere = true; // Whether the kernel can be reached.
  const showState = () => {
    const state = isThere ? model.get("state") : "cut off";
    const playing = state === "playing";
    run.replaceChildren(sign(playing ? "pause" : "play"));
    run.title = playing ? "Pause" : "Play";
    run.setAttribute("aria-label", run.title);
    for (const control of controls.querySelectorAll("button, input")) control.disabled = !isThere;
    stop.disabled ||= state === "stopped";
    el.dataset.state = state;
    if (playing && !wasPlaying) showPresent();
    if (wasPlaying && !playing && isThere) owed = !model.get("error_card");
    wasPlaying = playing;
    announce.textContent = state;
    describePlot();
  };
  const showSpeed = () => {
    const speed = model.get("steps_per_frame");
    slider.value = String(
      speeds.reduce(
        (best, value, index) => (Math.abs(value - speed) < Math.abs(speeds[best] - speed) ? index : best),
        0,
      ),
    );
    speedText.textContent = counted(speed, "step / frame", "steps / frame");
    slider.setAttribute("aria-valuetext", speedText.textContent);
  };
  const showRecording = () => {
    const recording = model.get("recording"); // Of a page: which of the two.
    const recorders = [
      [record, recording && recording !== "gif", film],
      [gif, recording === "gif", "Record a GIF"],
    ];
    for (const [node, isOn, title] of recorders.filter(([node]) => node)) {
      node.setAttribute("aria-pressed", String(Boolean(isOn)));
      node.title = isOn ? "End the recording and save it" : title;
      node.setAttribute("aria-label", node.title);
      node.disabled = Boolean(recording) && !isOn;
    }
    if (!recording) recorded = 0;
    showStatus();
  };
  const showError = () => {
    alert.innerHTML = model.get("error_card"); // Made by the kernel, which escapes what is the user's.
    alert.hidden = !model.get("error_card");
  };
  const drawAround = () => {
    frame?.draw();
    bar?.draw(roomAcross(), fineness);
    drawPlot();
  };
  const showTheme = () => {
    el.classList.toggle("tinote-dark", isDark(el));
    if (repaint()) owed = true;
    drawAround();
  };
  const showNote = () => {
    status.title = model.get("step_note");
  };
  const showKept = () => {
    kept.textContent = model.get("program_note") ?? "";
  };
  // For what stores the notebook's outputs (the extension for JupyterLab): how the view runs without a kernel, and its
  // picture after some steps that nobody has seen yet.
  const keepProgram = () => {
    el.tinoteProgram = model.get("program") ?? "";
  };
  const keepAhead = async ({ step }, pngs) => {
    const decoded = pngs.slice(0, 2).map((png) => createImageBitmap(new Blob([png], { type: "image/png" })));
    const [light, dark] = await Promise.all(decoded);
    el.tinoteAhead = { step, image: () => (isDark(el) ? dark : light) };
  };
  const watched = {
    "change:state": showState,
    "change:step_note": showNote,
    "change:picked": showStatus,
    "change:program": keepProgram,
    "change:program_note": showKept,
    "change:steps_per_frame": showSpeed,
    "change:error_card": showError,
    "change:recording": showRecording,
  };
  for (const [event, handler] of Object.entries(watched)) {
    model.on(event, handler);
    handler();
  }
  const receive = (message, buffers) => {
    if (message.kind === "hovered" && message.view === view) hovered(message);
    // Of several copies of the view, the one whose button was pressed gets the file.
    if (message.kind === "file" && message.page === view) download(model, message.ending, message.type, buffers[0]);
    if (["file", "refused"].includes(message.kind) && message.page === view) refused.textContent = message.words ?? "";
    if (message.kind === "ahead") keepAhead(message, buffers);
  };
  model.on("msg:custom", receive);
  const forgetTheme = watchTheme(showTheme);
  const resizes = new ResizeObserver(drawAround);
  // Where a number gets longer the status takes another line, and keeps it: what is below would jump up and down.
  let across = 0;
  const lines = new ResizeObserver(([{ contentRect: seen }]) => {
    status.style.minHeight = seen.width === across ? `${seen.height}px` : "";
    across = seen.width;
  });
  lines.observe(status);
  resizes.observe(group);
  showTheme();
  const disconnect = connect({
    model,
    el,
    stage: group.querySelector(".tinote-noticed") ?? group, // Quantities that a page lacks leave nothing to draw on.
    attended: (now) => {
      isThere = now;
      showState();
    },
    view,
    keep: (message, buffers) => {
      if (!owed && model.get("state") !== "playing") showPresent(); // Something has acted on the simulation.
      if (model.get("recording") && message.step !== said?.step) recorded += 1;
      if (message.whole) owed = false;
      isOutside = Boolean(message.outside);
      showFit();
      if (names.length) history.receive(buffers[buffers.length - 1], message.whole);
      keep(message, buffers, past === null);
      const frame = timeline.limit > 0 && remember(message, buffers);
      if (frame) timeline.add({ ...frame, step: message.step, row: history.latest });
    },
    paint: (message, buffers) => {
      if (past !== null) return null;
      painting += 1;
      const shown = show(message, buffers);
      if (!(shown instanceof Promise)) return describe(message.step, shown);
      return shown.then((lay) => () => past === null && describe(message.step, lay()));
    },
  });
  return () => {
    el.removeEventListener("fullscreenchange", onFull);
    disconnect();
    model.off("msg:custom", receive);
    forgetTheme();
    resizes.disconnect();
    lines.disconnect();
    for (const [event, handler] of Object.entries(watched)) model.off(event, handler);
    release(el);
  };
}
