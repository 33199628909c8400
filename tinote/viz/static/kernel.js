// What a view knows of its kernel: whether it is there, out of reach for a while, or gone for good.

const NOTICES = {
  waiting: "waiting for the cell",
  reconnecting: "reconnecting",
  gone: "kernel gone: run the cell again",
  works: (seconds, steps) =>
    `${steps === 1 ? "a step takes" : `${steps.toLocaleString("en")} steps take`} ${seconds} s`,
  silent: (seconds) => `no answer for ${seconds} s`,
};
// What a frame is the answer to.
const WITH_FRAMES = ["play", "pause", "step", "reset", "stop", "pointer", "change", "pick", "fit"];
const WITHOUT_ERROR = ["play", "step", "reset"]; // The same where an error has ended a view: these begin again.
const SILENCE_MILLISECONDS = 1000; // After which a view says what it waits for,
const PONG_MILLISECONDS = 400; // and in which a kernel answers that has time.
const ENDED = ["restarting", "autorestarting", "terminating", "dead"];
const unattended = new WeakSet(); // Models whose kernel cannot be reached.

const asked = new WeakMap(); // Since when a model waits for a frame.

/** Send `message` to the kernel of `model`, unless it is out of reach. */
function say(model, message) {
  if (unattended.has(model)) return;
  const answered = model.get("error_card") ? WITHOUT_ERROR : WITH_FRAMES;
  if (answered.includes(message.kind) && !asked.has(model)) asked.set(model, performance.now());
  model.send(message);
}

/**
 * Call `changed` with "live" now, with "reconnecting" while the page has lost the kernel of `model`, with "live" again
 * once it is back, and with "gone", for good, when the kernel that knew `model` has ended. A front end that tells of
 * its kernel has it as `widget_manager.kernel`; others say only that a view in `el` is cut off. Returns what undoes it.
 */
function watchKernel(model, el, changed) {
  const kernel = model.widget_manager?.kernel;
  let state = "live";
  const become = (next) => {
    if (state === "gone" || state === next) return;
    state = next;
    if (state === "live") unattended.delete(model);
    else unattended.add(model);
    changed(state);
  };
  const gone = () => become("gone");
  const received = () => become("live");
  const cutOff = () => el.closest(".jupyter-widgets-disconnected") && gone();
  const status = () => ENDED.includes(kernel.status) && gone();
  const connection = async () => {
    if (kernel.connectionStatus !== "connected") {
      become("reconnecting");
    } else if (state === "reconnecting") {
      // It may have been restarted behind the page's back. A busy kernel answers when it has time.
      const known = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
      become(model.get("identity") in known.content.comms ? "live" : "gone");
    }
  };
  changed(state);
  model.on("comm_live_update", cutOff);
  model.on("msg:custom", received);
  kernel?.statusChanged?.connect(status);
  kernel?.connectionStatusChanged?.connect(connection);
  kernel?.disposed?.connect(gone);
  return () => {
    model.off("comm_live_update", cutOff);
    model.off("msg:custom", received);
    kernel?.statusChanged?.disconnect(status);
    kernel?.connectionStatusChanged?.disconnect(connection);
    kernel?.disposed?.disconnect(gone);
  };
}

/**
 * Look four times a second whether the kernel of `model` owes a frame, since somebody has asked for one or since
 * `expected()`, and call `changed` with what it waits for, one of the `NOTICES` with its numbers, once that takes a
 * second. What the kernel does it says when it is asked; one that does not answer runs a cell, if the front end says
 * so. Returns what undoes it.
 */
function watchAnswers(model, expected, changed) {
  let [sent, isAnswered, works, isShown] = [0, true, false, false];
  const kernel = model.widget_manager?.kernel;
  // A kernel is busy with each message to a widget as well: that it has ended is not heard once the connection hangs.
  let runsCell = kernel?.status === "busy";
  const hear = (_, { header, parent_header: cause, content }) => {
    if (header.msg_type !== "status") return;
    runsCell = content.execution_state === "busy" && (runsCell || cause.msg_type === "execute_request");
  };
  const receive = (message) => {
    if (message.kind === "frame") asked.delete(model);
    if (message.kind !== "pong") return;
    [isAnswered, works] = [true, message.works];
  };
  const ended = () => model.get("state") !== "playing" && model.get("error_card") && asked.delete(model);
  const why = (now) => {
    if (isAnswered) return works ? "works" : "waiting";
    if (now - sent < PONG_MILLISECONDS) return null;
    if (model.isLocal) return "works"; // A Worker does nothing else.
    return runsCell ? "waiting" : "silent";
  };
  const look = () => {
    const now = performance.now();
    const waited = unattended.has(model) ? 0 : now - (asked.get(model) ?? expected() ?? now);
    if (waited > SILENCE_MILLISECONDS / 2 && isAnswered && now - sent > SILENCE_MILLISECONDS) {
      [sent, isAnswered] = [now, false];
      model.send({ kind: "ping" });
    }
    const kind = waited < SILENCE_MILLISECONDS ? null : why(now);
    if (kind) changed(kind, Math.round(waited / 1000), model.get("steps_per_frame") ?? 1);
    else if (isShown && !unattended.has(model)) changed("");
    isShown = Boolean(kind);
  };
  const timer = setInterval(look, 250);
  kernel?.iopubMessage?.connect(hear);
  model.on("msg:custom", receive);
  model.on("change:error_card", ended);
  return () => {
    clearInterval(timer);
    kernel?.iopubMessage?.disconnect(hear);
    model.off("msg:custom", receive);
    model.off("change:error_card", ended);
  };
}

/** A line over `stage` that says why nothing comes. Returns what shows one of the `NOTICES`, or none. */
function noticeOver(stage) {
  const line = document.createElement("div");
  line.className = "tinote-notice";
  line.setAttribute("role", "status");
  stage.append(line);
  return (kind, ...numbers) => {
    const text = NOTICES[kind] ?? "";
    line.textContent = typeof text === "string" ? text : text(...numbers);
  };
}
