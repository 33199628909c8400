// The list of stages with their operations and times; steps that changed nothing are folded away.

const MORE = "LLVM's own passes …";

/**
 * `host.selected(stage)`: the stage to show on the right; `host.held(stage)`: the one to hold on the left, or "before"
 * to follow the right one; `host.expanded()`: LLVM's own passes are wanted.
 */
class StageList {
  constructor(host) {
    this.host = host;
    this.id = `tinote-stages-${nextId++}`;
    this.showUnchanged = false;
    this.list = make("div", {
      class: "list",
      role: "listbox",
      tabindex: 0,
      "aria-label": "Stages",
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(event),
      onpointerdown: () => this.#press(),
    });
    [this.isPressed, this.isStale] = [false, false];
    [this.stages, this.found] = [[], new Map()];
    this.filter = make("input", {
      type: "search",
      class: "stage-filter",
      placeholder: "find a stage",
      "aria-label": "Find a stage by its name or what it does",
      oninput: () => this.#draw(),
      onkeydown: (event) => event.key === "Escape" && this.#clear(),
    });
    this.more = make(
      "button",
      {
        type: "button",
        class: "more",
        role: "option",
        title: "Run LLVM once more, and show the module after each of its own passes that changed something",
        onclick: () => this.#expand(),
      },
      MORE,
    );
    this.unchanged = make("button", {
      type: "button",
      class: "unchanged",
      "aria-pressed": "false",
      onclick: () => this.#toggle(),
    });
    this.element = make(
      "div",
      { class: "stages", role: "group", "aria-label": "Stages" },
      make("h2", {}, "Stages", this.filter),
      this.list,
      this.unchanged,
    );
  }

  /** Mark the stages in which something was found: how often, by stage. */
  count(found) {
    this.found = found;
    this.#draw();
  }

  /**
   * Show `stages`: `right` is the one on the right, `before` the one on the left, `held` the same if it is held there,
   * else null; `about`: a sentence about each name; `passes`: the stage before which LLVM's own passes
   * can be asked for, if any.
   */
  show({ stages, about, passes, right, before, held }) {
    Object.assign(this, { stages, about, passes, right, before, held });
    if (!passes) this.#offer(MORE);
    this.#draw();
  }

  /** The stages after and before the right one, as far as there are any. */
  neighbours() {
    const listed = this.#listed();
    const at = listed.indexOf(this.right);
    return [listed[at + 1], listed[at - 1]].filter((stage) => stage !== undefined);
  }

  #listed() {
    return this.stages.map((_, stage) => stage).filter((stage) => this.#isListed(stage));
  }

  /** A stage that is looked for by name is listed even if it changed nothing. */
  #isListed(stage) {
    const wanted = this.filter.value.trim().toLowerCase();
    if (wanted) return `${this.stages[stage].name} ${this.#aboutOf(stage)}`.toLowerCase().includes(wanted);
    return this.showUnchanged || this.found.has(stage) || this.stages[stage].changed || stage === this.right;
  }

  /** The sentence about a stage; a pass over one loop is that pass. */
  #aboutOf(stage) {
    return this.about[this.stages[stage].name.split(" %")[0]] ?? "";
  }

  #clear() {
    this.filter.value = "";
    this.#draw();
  }

  #expand() {
    this.#offer("LLVM runs …", true);
    this.host.expanded();
  }

  #offer(text, busy = false) {
    this.more.textContent = text;
    this.more.disabled = busy;
  }

  /** LLVM's passes cannot be shown, for the reason `problem`. */
  refuse(problem) {
    this.#offer("LLVM's passes cannot be shown");
    this.more.title = problem;
  }

  /** What is pressed stays until it is released: a click on what has gone meanwhile would be lost. */
  #press() {
    this.isPressed = true;
    const over = new AbortController();
    const release = () => {
      over.abort();
      // The click comes first.
      setTimeout(() => {
        this.isPressed = false;
        if (this.isStale) this.#draw();
      });
    };
    for (const kind of ["pointerup", "pointercancel"])
      document.addEventListener(kind, release, { signal: over.signal });
  }

  #draw() {
    this.isStale = this.isPressed;
    if (this.isPressed) return;
    const { stages } = this;
    const slowest = Math.max(...stages.map((stage) => stage.seconds ?? 0), 1e-9);
    const top = this.list.scrollTop;
    const nodes = [];
    let group = null; // the element that collects the steps of one round of a fixed point
    let last = -1;
    for (const stage of this.#listed()) {
      const name = stages[stage].group;
      // A group goes on after steps that are folded away, but not after others.
      const goesOn = group && stages.slice(last, stage).every((other) => other.group === name);
      if (name && !goesOn)
        nodes.push(
          (group = make(
            "div",
            { class: "group", role: "group", "aria-label": name },
            make("div", { class: "group-name", "aria-hidden": "true" }, name),
          )),
        );
      if (!name) group = null;
      const option = this.#option(stage, slowest);
      if (group) group.append(option);
      else nodes.push(option);
      if (this.passes === stage + 1) nodes.push(this.more);
      last = stage;
    }
    this.list.replaceChildren(...nodes);
    this.list.scrollTop = top;
    this.reveal();
    const folded = stages.filter((stage) => !stage.changed).length;
    this.unchanged.hidden = !folded;
    this.unchanged.setAttribute("aria-pressed", String(this.showUnchanged));
    this.unchanged.textContent = this.showUnchanged
      ? `Hide ${counted(folded, "step")} without change`
      : `${counted(folded, "step")} without change`;
  }

  /** Scroll the list, and nothing around it, so that the selected stage is in sight. */
  reveal() {
    const selected = this.list.querySelector('[aria-selected="true"]');
    this.list.setAttribute("aria-activedescendant", selected?.id ?? "");
    if (!selected) return;
    const [row, box] = [selected.getBoundingClientRect(), this.list.getBoundingClientRect()];
    if (row.top < box.top + row.height) this.list.scrollTop += row.top - box.top - row.height;
    else if (row.bottom > box.bottom - row.height) {
      const least = this.list.scrollTop + row.bottom - box.bottom + row.height;
      const tops = [...this.list.querySelectorAll(".stage, .group-name")].map(
        (node) => node.getBoundingClientRect().top - box.top + this.list.scrollTop,
      );
      this.list.scrollTop = tops.find((top) => top >= least) ?? least; // A whole row is the first one.
    }
  }

  #option(stage, slowest) {
    const { name, group, kind, operations, seconds, changed } = this.stages[stage];
    const { hue, mark } = TEXT_KINDS[kind];
    const earlier = this.stages.slice(0, stage).findLast((other) => other.kind === kind && other.operations !== null);
    const change = earlier && operations !== null && changed ? operations - earlier.operations : 0;
    const hits = this.found.get(stage);
    const delta = change ? `${change > 0 ? "+" : "−"}${Math.abs(change)}` : "";
    const words = [
      group && `${group},`,
      name,
      operations !== null && counted(operations, nounOf(kind)),
      duration(seconds),
      !changed && "unchanged",
      hits && `${hits} found`,
    ];
    const option = make(
      "div",
      {
        class: `stage${changed ? "" : " is-unchanged"}${stage === this.before ? " is-before" : ""}`,
        role: "option",
        id: `${this.id}-${stage}`,
        "data-stage": stage,
        "aria-selected": String(stage === this.right),
        "aria-label": words.filter(Boolean).join(" "),
        title: [group ? `${group}: ${name}` : name, this.#aboutOf(stage)].filter(Boolean).join("\n"),
      },
      make("span", { class: `kind is-${mark}`, style: `--hue: ${hue}`, "aria-hidden": "true" }),
      make("span", { class: "name" }, name),
      make("span", { class: hits ? "hits" : `delta${change < 0 ? " is-fewer" : ""}` }, hits ? String(hits) : delta),
      make("span", { class: "operations" }, operations === null ? "" : String(operations)),
      make("span", { class: "seconds" }, duration(seconds)),
      make("span", { class: "bar", "aria-hidden": "true" }),
    );
    const part = seconds ? Math.sqrt(seconds / slowest) : 0;
    option.lastChild.style.setProperty("--part", String(part < 0.08 ? 0 : part)); // A dot would say nothing.
    return option;
  }

  #toggle() {
    this.showUnchanged = !this.showUnchanged;
    this.#draw();
  }

  #click(event) {
    const option = event.target.closest("[data-stage]");
    if (!option) return;
    const stage = Number(option.dataset.stage);
    if (event.shiftKey || event.ctrlKey || event.metaKey) this.host.held(stage);
    else this.host.selected(stage);
  }

  #key(event) {
    const listed = this.#listed();
    const at = listed.indexOf(this.right);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: listed.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      this.host.selected(listed[Math.max(0, Math.min(listed.length - 1, moves[event.key]))]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.host.held(this.held === this.right ? "before" : this.right);
    }
  }
}

/** How many rows became what, in words, from the marks of aligned rows. */
function tallied(marks) {
  const tally = [0, 0, 0, 0, 0, 0];
  for (const mark of marks) tally[mark] += 1;
  tally[MOVED] /= 2;
  const parts = [
    [NEW, "new"],
    [GONE, "gone"],
    [CHANGED, "changed"],
    [MOVED, "moved"],
  ].filter(([mark]) => tally[mark]);
  return parts.map(([mark, word]) =>
    make(
      "span",
      { class: `count ${MARK_CLASSES[mark]}` },
      make("b", { "aria-hidden": "true" }, MARKS[mark]),
      ` ${tally[mark]} ${word}`,
    ),
  );
}

const MOST_BUTTONS = 4; // Of more titles, one is chosen from a list.

/** One of several titles, as radio buttons or a list; nothing where there is only one. `chosen(number)` is called. */
class Switch {
  constructor(label, chosen) {
    this.chosen = chosen;
    this.label = label;
    this.element = make("div", { class: "switch", role: "radiogroup", "aria-label": label });
    this.list = null;
  }

  offer(titles) {
    if (titles.length > MOST_BUTTONS) {
      const options = titles.map((title, number) => make("option", { value: number }, title));
      const chosen = () => this.chosen(Number(this.list.value));
      this.list = make("select", { "aria-label": this.label, onchange: chosen }, ...options);
      this.element.removeAttribute("role");
      this.element.replaceChildren(this.list);
      return;
    }
    const buttons = titles.map((title, number) =>
      make(
        "button",
        {
          type: "button",
          role: "radio",
          onclick: () => this.chosen(number),
          onkeydown: (event) => this.#key(event, number),
        },
        title,
      ),
    );
    this.element.replaceChildren(...(buttons.length > 1 ? buttons : []));
  }

  show(chosen) {
    if (this.list) {
      this.list.value = String(chosen);
      return;
    }
    [...this.element.children].forEach((button, number) => {
      button.setAttribute("aria-checked", String(number === chosen));
      button.tabIndex = number === chosen ? 0 : -1;
    });
  }

  #key(event, number) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const count = this.element.children.length;
    const other = (number + step + count) % count;
    this.chosen(other);
    this.element.children[other].focus();
  }
}
