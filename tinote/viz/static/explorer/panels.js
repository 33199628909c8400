// The drawer under the panes: one tab a panel, one panel open at a time. What a panel shows is asked for when it is
// first opened.

/**
 * `host.ask(name)` asks for a panel's tables; `host.pointed(place)` and `host.chosen(place)` tell that a row is
 * pointed at or chosen, `host.left()` that none is; `host.changed()` that the panel in sight, or its notes, have
 * changed. A panel is made of tables, or draws itself: `drawn` names those that do, as functions that give an element.
 * `framed`: what stands around the tables of a panel, as functions of its content and the tables.
 */
class Panels {
  constructor(host, drawn, framed) {
    this.host = host;
    this.drawn = drawn;
    this.framed = framed;
    this.id = `tinote-panels-${nextId++}`;
    this.contents = new Map();
    this.known = [];
    this.open = "";
    this.tabs = make("div", {
      class: "tabs",
      role: "tablist",
      "aria-label": "More about this kernel",
      onkeydown: (event) => this.#key(event),
    });
    this.body = make("div", { class: "panel", role: "tabpanel", id: this.id, tabindex: 0, hidden: true });
    this.element = make(
      "div",
      { class: "drawer", role: "group", "aria-label": "More about this kernel" },
      this.tabs,
      this.body,
    );
    this.body.addEventListener("pointerleave", () => host.left());
  }

  /** Offer the panels of a view, as [name, title]; what an earlier view had open stays open if this one has it. */
  offer(panels, contents) {
    this.known = panels;
    this.contents = contents;
    this.focused = panels.some(([name]) => name === this.focused) ? this.focused : panels[0]?.[0];
    if (!panels.some(([name]) => name === this.open)) this.open = "";
    this.element.hidden = !panels.length;
    this.#draw();
    if (this.open) this.#need();
  }

  /** A panel's tables have arrived. */
  receive(name) {
    if (name === this.open) this.#fill();
    this.host.changed();
  }

  /** Draw the open panel again if it is the one that draws itself under this name; gives what it shows then. */
  renew(name) {
    if (this.open !== name) return null;
    this.#fill();
    return this.body.firstElementChild;
  }

  /** Scroll the panel, and nothing around it, so that the operation or the word that it is about is in the middle. */
  reveal() {
    const node = this.body.querySelector(".node.is-centre, .entry.is-wanted");
    if (!node) return;
    const [own, box] = [node.getBoundingClientRect(), this.body.getBoundingClientRect()];
    this.body.scrollLeft += own.left - box.left + (own.width - this.body.clientWidth) / 2;
    this.body.scrollTop += own.top - box.top + (own.height - this.body.clientHeight) / 2;
  }

  /** How many pixels its content may be wide: its padding and a scroll bar aside. */
  get room() {
    return this.body.offsetWidth - 36;
  }

  /** What is next to a row of the source: { text, tone, title }, or nothing. */
  note(row) {
    return this.contents.get(this.open)?.notes?.find((note) => note.row === row);
  }

  toggle(name) {
    this.focused = name;
    this.show(this.open === name ? "" : name);
  }

  /** Open a panel, or with "" none; one that is not offered is none. */
  show(name) {
    this.open = this.known.some(([other]) => other === name) ? name : "";
    if (this.open) this.focused = this.open;
    this.#draw();
    if (this.open) this.#need();
    this.host.changed();
  }

  #need() {
    if (!this.drawn[this.open] && !this.contents.has(this.open)) {
      this.contents.set(this.open, { waiting: true });
      this.host.ask(this.open);
    }
    this.#fill();
  }

  #draw() {
    this.tabs.replaceChildren(
      ...this.known.map(([name, title]) =>
        make(
          "button",
          {
            type: "button",
            role: "tab",
            "data-panel": name,
            "aria-selected": String(name === this.open),
            "aria-controls": this.id,
            "aria-expanded": String(name === this.open),
            tabindex: name === this.focused ? 0 : -1,
            onclick: () => this.#press(name),
          },
          title,
        ),
      ),
    );
    this.body.hidden = !this.open;
    this.body.setAttribute("aria-label", this.known.find(([name]) => name === this.open)?.[1] ?? "");
  }

  #press(name) {
    this.toggle(name);
    this.tabs.querySelector(`[data-panel="${name}"]`).focus();
    if (this.open) this.element.scrollIntoView({ block: "nearest" });
  }

  #fill() {
    const drawn = this.drawn[this.open];
    const content = this.contents.get(this.open);
    if (drawn) this.body.replaceChildren(drawn());
    else if (content.problem)
      this.body.replaceChildren(make("pre", { class: "panel-problem", role: "alert" }, content.problem));
    else if (content.waiting) this.body.replaceChildren(make("p", { class: "empty" }, "computing …"));
    else {
      const tables = content.tables.map((table) => this.#table(table));
      this.body.replaceChildren(...(this.framed[this.open]?.(content, tables) ?? tables));
    }
    this.body.dataset.filled = content?.waiting ? "" : this.open;
    this.reveal();
  }

  #table({ title, columns, rows, empty }) {
    if (!rows.length)
      return make("div", { class: "facts" }, make("h3", {}, title), make("p", { class: "empty" }, empty));
    const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
    const body = rows.map((row) => this.#row(row));
    return make(
      "div",
      { class: "facts" },
      make("table", {}, make("caption", {}, title), make("thead", {}, head), make("tbody", {}, ...body)),
    );
  }

  #row({ place, cells, tone }) {
    const point = () => this.host.pointed(place);
    const name =
      place[0] >= 0
        ? make(
            "button",
            {
              type: "button",
              class: "to-source",
              title: "Show where it comes from",
              onclick: () => this.host.chosen(place),
              onfocus: point,
              onblur: () => this.host.left(),
            },
            cells[0],
          )
        : cells[0];
    const rest = cells.slice(1).map((text) => make("td", {}, text));
    return make(
      "tr",
      {
        class: tone ? `is-${tone}` : "",
        onpointerenter: point,
        onclick: (event) => event.target.tagName !== "BUTTON" && place[0] >= 0 && this.host.chosen(place),
      },
      make("th", { scope: "row" }, name),
      ...rest,
    );
  }

  #key(event) {
    const names = this.known.map(([name]) => name);
    const at = names.indexOf(this.focused);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) {
      if (event.key === "Escape" && this.open) {
        event.preventDefault();
        event.stopPropagation();
        this.#press(this.open);
      }
      return;
    }
    event.preventDefault();
    this.focused = names[(to + names.length) % names.length];
    for (const tab of this.tabs.children) tab.tabIndex = tab.dataset.panel === this.focused ? 0 : -1;
    this.tabs.querySelector(`[data-panel="${this.focused}"]`).focus();
  }
}
