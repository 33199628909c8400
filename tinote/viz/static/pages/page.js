// A page that runs: live views with their controls, each with a program of its own, and the page's theme.

const THEMES = { "": "follows the system", light: "light", dark: "dark" };

/** A button that says where the simulation runs, and moves it; there once the page has a GPU for it. */
function deviceButton(model) {
  const other = () => model.get("devices").find((name) => name !== model.get("device"));
  const button = make("button", {
    type: "button",
    class: "tinote-device",
    hidden: true,
    onclick: () => model.send({ kind: "device", device: other() }),
  });
  const show = () => {
    button.hidden = !model.get("devices")?.length;
    if (button.hidden) return;
    button.textContent = `on the ${model.get("device")}`;
    button.title = `Runs on the ${model.get("device")}; click to run on the ${other()}`;
    button.setAttribute("aria-label", button.title);
  };
  model.on("change:devices", show);
  model.on("change:device", show);
  return button;
}

/** Show the views of `data` in the elements that name them. Gives their models, in order. */
function showViews(data) {
  const url = URL.createObjectURL(new Blob([data.engine], { type: "text/javascript" }));
  return [...document.querySelectorAll("[data-tinote-view]")].map((el) => {
    const view = data.views[Number(el.dataset.tinoteView)];
    const stage = make("div", {});
    el.replaceChildren(stage);
    const model = new LocalModel(view, view.program, () => new Worker(url), stage);
    VIEWS[view.kind].render({ model, el: stage });
    const style = `max-width:${view.traits.width}px`;
    if (view.gpu) stage.append(make("div", { class: "tinote-devices", style }, deviceButton(model)));
    const controls = view.controls.length ? controlPanel(model, view.controls) : [];
    if (controls.length) el.append(make("div", { class: "tinote-panel", style }, ...controls));
    return model;
  });
}

/** A button that changes the page's theme: the system's, light or dark. */
function themeButton() {
  let now = "";
  const button = make("button", {
    type: "button",
    class: "tinote-theme",
    onclick: () => {
      const next = isDark(document.body) ? "light" : "dark";
      now = next === (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") ? "" : next;
      show();
    },
  });
  const show = () => {
    for (const name of ["light", "dark"]) document.documentElement.classList.toggle(name, name === now);
    button.textContent = isDark(document.body) ? "☀" : "☾";
    button.title = `Theme: ${THEMES[now]}`;
    button.setAttribute("aria-label", `Change the theme, which ${now ? `is ${THEMES[now]}` : THEMES[now]}`);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  return button;
}

/** Begin: `data` is what the page holds (`pages/boot.js`), and whether a page around this one says its theme. An
 * address that ends in "#play" has the views play at once, unless the reader's system asks for less motion.
 */
function startPage(data) {
  if (!data.takesTheme) document.body.append(themeButton());
  globalThis.tinote = { models: showViews(data) };
  if (location.hash === "#play" && !matchMedia("(prefers-reduced-motion: reduce)").matches)
    for (const model of globalThis.tinote.models) model.send({ kind: "play" });
  document.documentElement.dataset.ready = "yes";
}
