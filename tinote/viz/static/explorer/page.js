// The explorer in a page of its own.

/** Which lines of all stages of a view have a text. */
function found({ stages }, { view, text }) {
  const own = Object.values(stages).filter((stage) => stage.view === view && stage.text !== undefined);
  const lines = own.map(({ stage, text: all }) => [stage, linesWith(all.split("\n"), text)]);
  return { view, text, stages: Object.fromEntries(lines.filter(([, hits]) => hits.length)) };
}

/** Show an explorer in a page of its own: `data` is everything that it could ask a kernel for. */
function showPage(root, data) {
  const listeners = new Set();
  const hasAddress = location.protocol !== "about:"; // And is not held by another page.
  let state = location.hash.length > 1 ? stateOf(location.hash) : data.state;
  const reply = (message) => queueMicrotask(() => listeners.forEach((listener) => listener(message)));
  const model = {
    get: (name) =>
      ({
        label: data.name,
        state,
        opening: {
          titles: data.titles,
          start: data.start,
          view: data.views[data.start],
          stages: [],
          glossary: data.glossary,
          instructions: data.instructions,
        },
      })[name],
    set: (_, shown) => (state = shown),
    save_changes: () => hasAddress && history.replaceState(null, "", `#${fragmentOf(state)}`),
    link: (fragment) => `${hasAddress ? location.href.split("#")[0] : ""}#${fragment}`,
    on: (event, listener) => {
      if (event === "msg:custom") listeners.add(listener);
      else if (event === "restore")
        addEventListener("hashchange", () => {
          state = stateOf(location.hash);
          listener();
        });
    },
    off: (_, listener) => listeners.delete(listener),
    send: (message) => {
      if (message.kind === "view") reply({ kind: "view", ...data.views[message.view] });
      else if (message.kind === "panel") reply({ kind: "panel", ...data.panels[`${message.view}/${message.panel}`] });
      else if (message.kind === "measure")
        reply({
          kind: "panel",
          ...data.panels[`${message.view}/roofline`],
          refused: "Loops are measured in a running notebook, on the machine that runs it.",
        });
      else if (message.kind === "observe")
        reply({
          kind: "observed",
          ...message,
          problem: "Values are observed in a running notebook, where the fields have their memory.",
        });
      else if (message.kind === "find") reply({ kind: "found", ...found(data, message) });
      else if (message.kind === "previous")
        reply({ kind: "previous", ...data.previous[`${message.view}/${message.stage}`] });
      else reply({ kind: "stage", ...data.stages[`${message.view}/${message.stage}`] });
    },
  };
  return new Explorer(model, root);
}
