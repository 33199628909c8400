// What a view knows of its kernel: whether it is there, out of reach for a while, or gone for good.

const NOTICES = {
  waiting: "waiting for the cell",
  reconnecting: "reconnecting",
  gone: "kernel gone: run the cell again",
};
const ENDED = ["restarting", "autorestarting", "terminating", "dead"];
const unattended = new WeakSet(); // Models whose kernel cannot be reached.

/** Send `message` to the kernel of `model`, unless it is out of reach. */
function say(model, message) {
  if (!unattended.has(model)) model.send(message);
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

/** A line over `stage` that says why nothing comes. Returns what shows one of the `NOTICES`, or none. */
function noticeOver(stage) {
  const line = document.createElement("div");
  line.className = "tinote-notice";
  line.setAttribute("role", "status");
  stage.append(line);
  return (kind) => {
    line.textContent = NOTICES[kind] ?? "";
  };
}
