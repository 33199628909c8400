// The IR explorer: a list of stages, two of them side by side, and the source that they come from.

const HINT =
  "↑ ↓ stages or lines · Enter holds · c compares · d u b definition, use, back · n p differences · / search";
const PREVIOUS = "previous"; // on the left: the stage on the right as it was in the previous run, or as another has it
const ALONE = "none"; // nothing on the left: the source stands beside the stage
const PANES = ["stages", "source"]; // What can be folded away, besides the stage on the left.

class Explorer {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.views = new Map();
    this.stages = new Map();
    this.asked = new Set();
    this.view = 0;
    this.right = 0;
    this.left = null; // null: the stage before the right one; or PREVIOUS, or ALONE
    this.onlyDifferences = this.wraps = this.withoutLabels = false;
    this.hover = null;
    this.pinned = null;
    this.variable = "";
    this.painted = 0;
    this.panelContents = new Map(); // by view, then by panel
    this.#build(model.get("label"));
    this.receive = (message) => this.#receive(message);
    model.on("msg:custom", this.receive);
    const notice = noticeOver(this.body);
    this.unattend = watchKernel(model, root, (state) => {
      root.dataset.kernel = state;
      notice(state);
    });
    const theme = () => root.classList.toggle("is-dark", isDark(root));
    this.unwatch = watchTheme(theme);
    // The colour behind it, and how many lines it has room for, are known once it is on the page. What is selected
    // stays in sight when there is less room.
    let width = 0;
    this.placed = new ResizeObserver(() => {
      theme();
      if (!this.views.size) this.#open(model.get("opening"));
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      this.list.reveal();
      this.walker.follow();
    });
    this.placed.observe(root);
    this.restore = () => this.views.size && this.#restore(model.get("state") ?? {});
    model.on("restore", this.restore);
  }

  close() {
    clearTimeout(this.noting);
    this.model.off("msg:custom", this.receive);
    this.model.off("restore", this.restore);
    this.unattend();
    this.unwatch();
    this.placed.disconnect();
    for (const lines of [this.source, ...this.panes]) lines.resized.disconnect();
  }

  // The page

  #build(name) {
    keepKeys(this.root);
    this.root.classList.add("tinote-explorer");
    this.switch = new Switch("What is shown", (view) => this.#showView(view));
    this.search = new Search({
      docs: () => this.docs,
      quiet: () => this.#light(),
      filtered: () => this.#showStages(),
      ask: (text) => say(this.model, { kind: "find", view: this.view, text }),
      here: () => [this.#origin(this.right), this.panes[1].lineAt(this.panes[1].current)],
      go: (stage, line) => this.#goTo(stage, line),
      counted: () => this.list.count(this.search.ofStage),
    });
    this.together = toggleButton("Compare", "Show another stage on the left (c)", () => this.#toggleAlone());
    this.fold = toggleButton("Only differences", "Fold away what is equal on both sides", () =>
      this.#toggle("onlyDifferences", this.fold),
    );
    this.wrap = toggleButton("Wrap", "Break long lines", () => this.#toggle("wraps", this.wrap));
    this.unlabelled = toggleButton("No labels", "Hide labels and constants of the assembly", () =>
      this.#toggle("withoutLabels", this.unlabelled),
    );
    const previous = make(
      "button",
      {
        type: "button",
        class: "step",
        "aria-label": "Previous difference",
        title: "Previous difference (p)",
        onclick: () => this.#jump(-1),
      },
      "↑",
    );
    const next = make(
      "button",
      {
        type: "button",
        class: "step",
        "aria-label": "Next difference",
        title: "Next difference (n)",
        onclick: () => this.#jump(1),
      },
      "↓",
    );
    this.compare = toggleButton("Previous run", "", () => this.#togglePrevious());
    this.jumps = make("span", { class: "tools" }, this.fold, previous, next);
    const head = make(
      "div",
      { class: "head" },
      make("strong", { class: "title", title: name, ...asHeading(this.root) }, name),
      this.switch.element,
      make("span", { class: "gap" }),
      this.search.element,
      this.search.filter,
      make(
        "span",
        { class: "tools" },
        this.compare,
        this.together,
        this.jumps,
        copyButton(
          "Copy link",
          "Copy a link or a call that opens the explorer in its present state: stages, selected line, open tab",
          () => this.#link(),
          "opens the explorer in its present state",
          (text) => this.#say(text),
        ),
        fullScreenButton(this.root),
      ),
    );

    this.list = new StageList({
      selected: (stage) => this.#select(stage),
      held: (stage) => this.#chooseStage(0, stage),
      expanded: () => this.model.send({ kind: "passes", view: this.view }),
    });

    this.source = new SourceLines({
      pointed: (line, column) => this.#pointSource(line, column),
      chosen: (line, column) => this.#choose(sourceFocus(this.docs, line, column), this.source),
      left: () => this.#hover(null),
      named: () => {},
      name: () => "",
      term: () => "",
      look: (row) => (this.focus?.rows.has(row) ? (row === this.focus.row ? "strong" : "lit") : ""),
      highlight: (row) =>
        row === this.focus?.row && this.focus.end > this.focus.column ? [this.focus.column, this.focus.end] : null,
      note: (row) => this.panels.note(row),
    });

    this.panes = ["left", "right"].map((side, number) => {
      const label = number ? "Stage on the right" : "Stage on the left";
      const lines = new Lines(label, {
        pointed: (line, column) => this.#pointStage(number, line, column),
        chosen: (line, _, word) =>
          this.#openKernel(number, line, word) ||
          this.walker.toDefinition(number, line, word) || this.#choose(this.#stageFocus(number, line), lines),
        left: () => this.#hover(null),
        named: (word, line) => this.#name(word, number, line),
        name: () => this.variable,
        term: (word, line) => this.#meaning(lines, word, line),
        look: (line) => this.#look(number, line),
        scrolled: (top) => this.#scrolled(number, top),
        resized: () => this.#layOut(),
      });
      lines.choice = make("select", {
        "aria-label": number ? "Stage on the right" : "Stage on the left",
        onchange: (event) => this.#chooseStage(number, event.target.value),
      });
      lines.info = make("span", { class: "info" });
      lines.pane = make(
        "div",
        { class: `pane ${side}`, role: "group", "aria-label": label },
        make(
          "div",
          { class: "pane-head" },
          lines.choice,
          lines.info,
          ...(number ? [this.unlabelled, this.wrap] : []),
          copyButton(
            "Copy",
            "Copy the text of this stage",
            () => this.docs[number].texts.join("\n"),
            "the text of the stage",
            (text) => this.#say(text),
          ),
        ),
        lines.element,
      );
      return lines;
    });
    this.panels = new Panels(
      {
        ask: (panel) => say(this.model, { kind: "panel", view: this.view, panel }),
        pointed: (place) => this.#hover(placeFocus(place)),
        chosen: (place) => this.#choose(placeFocus(place), null),
        left: () => this.#hover(null),
        changed: () => {
          this.source.renew();
          this.#note();
        },
      },
      {
        flow: () => this.walker.draw(),
        values: () => this.values.draw(),
        glossary: () => this.glossary.draw(),
      },
      { roofline: (content, tables) => this.roofline.draw(content, tables) },
    );
    this.roofline = new Roofline({
      ask: (numbers) => {
        this.panelContents.get(this.view).set("roofline", { waiting: true });
        this.panels.receive("roofline");
        say(this.model, { kind: "measure", view: this.view, arguments: numbers });
      },
    });
    this.values = new Values({
      ask: (question) =>
        say(this.model, { kind: "observe", view: this.view, stage: this.#origin(this.right), ...question }),
      go: (line) => this.walker.go(1, line),
      pointed: (line) => this.docs?.[1] && this.#hover(this.#stageFocus(1, line)),
      left: () => this.#hover(null),
      drawn: () => this.panels.renew("values"),
    });
    this.walker = new Walker({
      panes: this.panes,
      docs: () => this.docs,
      pinned: () => this.pinned,
      focusOf: (side, line) => this.#stageFocus(side, line),
      look: (side, line) => this.#look(side, line),
      pin: (focus, from) => this.#pin(focus, from),
      hover: (focus) => this.#hover(focus),
      room: () => this.panels.room,
      drawn: () => this.panels.renew("flow"),
    });
    this.search.host.panes = this.panes;
    this.status = make("div", { class: "foot", role: "status", "aria-live": "polite" });
    this.counts = make("span", { class: "counts" });
    this.words = make("span", { class: "words" });
    this.status.append(this.words, this.counts);
    this.problem = make("pre", { class: "problem", role: "alert", hidden: true });
    this.about = make("p", { class: "about" });
    this.body = make(
      "div",
      { class: "body" },
      this.list.element,
      this.source.section,
      this.about,
      this.panes[0].pane,
      this.panes[1].pane,
      this.problem,
    );
    this.body.append(
      divider(
        "Width of the list of stages",
        "--list",
        (x, box) => [x, 140, box.width / 2, "px"],
        this.body,
        this.#folding("stages"),
      ),
      divider(
        "Height of the source",
        "--source",
        (y, box) => [y, 48, box.height - 160, "px"],
        this.body,
        this.#folding("source"),
        true,
      ),
      divider(
        "Width of the left pane",
        "--left",
        (x, box) => [(x / box.width) * 100, 30, 85, "%"],
        this.body,
        this.#folding("source", () => this.left === ALONE),
      ),
    );
    this.folds = PANES.map((name) => this.#foldOf(name));
    this.body.querySelectorAll("h2").forEach((head, number) => head.prepend(this.folds[number]));
    this.root.append(make("div", { class: "frame" }, head, this.body, this.panels.element, this.status));
    this.root.addEventListener("keydown", (event) => this.#rootKey(event));
  }

  // What the kernel, or the page's own data, says

  #open({ titles, start, view, stages, glossary, instructions }) {
    this.titles = titles;
    this.instructions = new Instructions(instructions);
    this.glossary = new Glossary(glossary, () => {
      this.panels.show("glossary");
      this.panels.element.scrollIntoView({ block: "nearest" });
    });
    this.switch.offer(titles);
    this.views.set(start, structuredClone(view)); // The same widget may be shown several times.
    for (const stage of stages) this.#keep(stage);
    this.view = start;
    this.#restore(this.model.get("state") ?? {});
  }

  // What is shown, to be found again

  get state() {
    const { stages } = this.shown;
    const tops = this.panes.map((lines) => lines.rowAt(lines.element.scrollTop + ROW_HEIGHT / 2));
    return {
      view: this.titles[this.view],
      stage: stages[this.right].key,
      ...(this.left === null ? {} : { left: stages[this.left]?.key ?? this.left }),
      ...selectionOf(this.pinned, this.source, this.panes),
      ...(this.panels.open ? { tab: this.panels.open } : {}),
      ...(this.onlyDifferences ? { only: "differences" } : {}),
      ...(this.wraps ? { lines: "wrapped" } : {}),
      ...(this.withoutLabels ? { labels: "hidden" } : {}),
      ...(this.hidden.length ? { hidden: this.hidden.join("-") } : {}),
      ...(this.shown.inserted ? { passes: "shown" } : {}),
      top: tops.join("-"),
    };
  }

  /** Show what a state says, as soon as its lines have arrived; what it does not say is as usual. */
  #restore(state) {
    this.wanted = state;
    this.#toggle("onlyDifferences", this.fold, state.only === "differences");
    this.#toggle("wraps", this.wrap, state.lines === "wrapped");
    this.#toggle("withoutLabels", this.unlabelled, state.labels === "hidden");
    PANES.forEach((name) => this.#hide(name, (state.hidden ?? "").split("-").includes(name)));
    const view = this.titles.indexOf(state.view);
    this.#showView(view >= 0 ? view : this.view);
  }

  /** The lines are there: the rest of the state that is wanted. */
  #settle() {
    const { tab, ...wanted } = this.wanted;
    this.wanted = null;
    const focusOf = (side, line) => this.#stageFocus(side, line);
    this.pinned = selectedIn(wanted, this.source, this.panes, focusOf);
    if (this.pinned && this.pinned.side >= 0)
      this.panes[this.pinned.side].moveTo(this.panes[this.pinned.side].visualOf[this.pinned.line], false);
    const tops = wanted.top?.split("-").map(Number) ?? [];
    this.panes.forEach((lines, side) => {
      if (tops[side] >= 0) lines.element.scrollTop = lines.topOf(Math.min(tops[side], lines.rows.length));
    });
    this.panels.show(tab ?? "");
    this.noted = fragmentOf(this.state);
  }

  /** Tell the model, a little later, that something else is shown. */
  #note() {
    clearTimeout(this.noting);
    this.noting = setTimeout(() => {
      if (this.wanted || !this.shown?.stages || unattended.has(this.model)) return;
      const state = this.state;
      if (this.noted === fragmentOf(state)) return;
      this.noted = fragmentOf(state);
      this.model.set("state", state);
      this.model.save_changes();
      this.root.dataset.noted = this.noted;
    }, 150);
  }

  #link() {
    const fragment = fragmentOf(this.state);
    return this.model.link?.(fragment) ?? `ti.viz.explore(${this.model.get("opening").given}, state="${fragment}")`;
  }

  #keep(stage) {
    this.stages.set(
      `${stage.view}/${stage.stage}`,
      new Stage(stage, this.views.get(stage.view).stages[stage.stage].kind),
    );
  }

  #receive(message) {
    if (message.kind === "view") {
      this.views.set(message.view, message);
      if (message.view === this.view) this.#openView();
    } else if (message.kind === "observed") {
      if (message.view === this.view && message.stage === this.#origin(this.right)) this.values.receive(message);
    } else if (message.kind === "previous") {
      this.stages.set(
        `${message.view}/${message.stage}/${PREVIOUS}`,
        Object.assign(new Stage(message, this.views.get(message.view).stages[message.stage].kind), { facts: message }),
      );
      if (message.view === this.view && this.left === PREVIOUS && this.#origin(this.right) === message.stage)
        this.#showStages();
    } else if (message.kind === "panel") {
      this.panelContents.get(message.view).set(message.panel, message);
      if (message.view === this.view) this.panels.receive(message.panel);
    } else if (message.kind === "found") {
      if (message.view === this.view) this.search.receive(message);
    } else if (message.kind === "passes") {
      this.#insert(message);
    } else if (message.kind === "stage") {
      this.#keep(message);
      const facts = this.views.get(message.view).stages[message.stage];
      const late = facts.operations === null;
      Object.assign(facts, {
        seconds: message.seconds ?? facts.seconds,
        operations: message.operations ?? facts.operations,
      });
      if (message.view !== this.view) return;
      if (late) this.#listStages();
      if ([this.right, this.before].some((stage) => stage >= 0 && this.#origin(stage) === message.stage))
        this.#showStages();
    }
  }

  /** LLVM's own passes have arrived: stages among those of a view, whose later stages are renumbered. */
  #insert({ view, problem, shown, inserted }) {
    if (problem) {
      if (view === this.view) this.list.refuse(problem);
      return;
    }
    const [first, count] = inserted;
    const before = this.views.get(view);
    if (before.stages.length === shown.stages.length) return;
    const moved = (stage) => (Number.isInteger(stage) && stage >= first ? stage + count : stage);
    for (const key of [...this.stages.keys(), ...this.asked]) {
      if (!key.startsWith(`${view}/`) || Number(key.split("/")[1]) < first) continue;
      this.stages.delete(key);
      this.asked.delete(key);
    }
    const memory = before.memory ?? { left: null, right: shown.start };
    this.views.set(view, { ...shown, inserted, memory: { left: moved(memory.left), right: moved(memory.right) } });
    if (view !== this.view) return;
    Object.assign(this, this.shown.memory);
    this.#select(this.right);
  }

  get shown() {
    return this.views.get(this.view);
  }

  get focus() {
    return this.hover ?? this.pinned;
  }

  /** The present stage on the left, -1 for none. */
  get before() {
    if (this.left === PREVIOUS || this.left === ALONE) return -1;
    if (this.left !== null) return this.left;
    const origin = this.#origin(this.right);
    if (origin !== this.right) return origin;
    for (let stage = this.right - 1; stage >= 0; stage--) if (this.shown.stages[stage].changed) return stage;
    return -1;
  }

  /** The stage that has the lines of `stage`: itself, or the last one that changed something. */
  #origin(stage) {
    return this.shown.stages[stage].lines;
  }

  /** The lines of a stage, or of its counterpart in the previous run; asks for them if they have not arrived yet. */
  #stage(stage, kind = "stage") {
    const key = `${this.view}/${this.#origin(stage)}${kind === PREVIOUS ? `/${kind}` : ""}`;
    if (!this.stages.has(key) && !this.asked.has(key)) {
      this.asked.add(key);
      say(this.model, { kind, view: this.view, stage: this.#origin(stage) });
    }
    return this.stages.get(key);
  }

  #showView(view) {
    this.view = view;
    this.switch.show(view);
    if (this.shown) this.#openView();
    else say(this.model, { kind: "view", view });
  }

  #openView() {
    const { problem, stages, sources, start } = this.shown;
    this.problem.hidden = !problem;
    this.problem.textContent = problem ?? "";
    this.body.classList.toggle("has-problem", Boolean(problem));
    this.hover = this.pinned = null;
    this.docs = [null, null];
    if (!this.panelContents.has(this.view)) this.panelContents.set(this.view, new Map());
    this.panels.offer(
      [
        ...(this.shown.panels ?? []),
        ["flow", "Data flow"],
        ...(this.shown.parameters ? [["values", "Values"]] : []),
        ["glossary", "Glossary"],
      ],
      this.panelContents.get(this.view),
    );
    this.values.offer(this.shown.parameters ?? [], this.shown.seeded);
    if (problem) {
      this.wanted = null;
      this.#say(problem.trim().split("\n")[0]);
      this.counts.replaceChildren();
      return;
    }
    const memory = this.shown.memory ?? { left: this.shown.alone ? ALONE : null, right: start };
    Object.assign(this, this.wanted ? stagesOf(this.wanted, this.shown, memory) : memory);
    this.source.open(sources);
    this.body.style.setProperty("--source-rows", String(Math.max(4, Math.min(14, this.source.rows.length))));
    if (stages) this.#select(this.right);
  }

  // Which stages are shown

  #listStages() {
    const { stages, about, passes } = this.shown;
    const before = this.before;
    this.list.show({ stages, about, passes, right: this.right, before, held: this.left });
    const option = (stage) =>
      make("option", { value: stage }, `${stages[stage].group ? `${stages[stage].group}: ` : ""}${stages[stage].name}`);
    const changed = stages
      .map((_, stage) => stage)
      .filter((stage) => stages[stage].changed || stage === this.right || stage === this.left);
    const label =
      this.left === PREVIOUS ? "the stage before" : before >= 0 ? `before: ${stages[before].name}` : "nothing before";
    const previous = this.shown.previous
      ? [make("option", { value: PREVIOUS }, `${this.shown.compared || "previous run"}: ${stages[this.right].name}`)]
      : [];
    this.panes[0].choice.replaceChildren(
      make("option", { value: "before" }, label),
      ...previous,
      ...changed.map(option),
    );
    this.panes[0].choice.value = this.left === null ? "before" : String(this.left);
    this.together.setAttribute("aria-pressed", String(this.left !== ALONE));
    this.body.classList.toggle("is-alone", this.left === ALONE);
    this.jumps.hidden = this.left === ALONE;
    this.compare.hidden = !this.shown.previous;
    this.compare.textContent = this.shown.compared ? `Compare with ${this.shown.compared}` : "Previous run";
    this.compare.title = this.shown.compared
      ? `Show the same stage of ${this.shown.compared} on the left (r)`
      : "Compare with this kernel before its last change (r)";
    this.compare.setAttribute("aria-pressed", String(this.left === PREVIOUS));
    this.panes[1].choice.replaceChildren(...changed.map(option));
    this.panes[1].choice.value = String(this.right);
  }

  #chooseStage(side, value) {
    if (side === 0)
      this.left = value === "before" ? null : value === PREVIOUS || value === ALONE ? value : Number(value);
    this.#select(side === 0 ? this.right : Number(value));
  }

  #select(stage) {
    if (this.right !== stage) this.values.forget();
    this.right = stage;
    this.shown.memory = { left: this.left, right: stage };
    this.#listStages();
    this.#showStages();
  }

  /** Show a line of a stage on the right. */
  #goTo(stage, line) {
    if (stage === this.#origin(this.right)) {
      this.panes[1].moveTo(this.panes[1].visualOf[line], false);
    } else {
      this.goal = line;
      this.#select(stage);
    }
  }

  // What words mean

  /** What a word of a line means: a pattern of bits, an operation, a word of the compiler's own language. */
  #meaning({ kind, texts }, word, line) {
    return (
      decoded(word, kind, texts[line]) ||
      (operationWord(texts[line], kind) === word && this.instructions.meaning(word, kind)) ||
      (TEXT_KINDS[kind]?.ours ? this.glossary.sentence(word) : "")
    );
  }

  /** Show the stages of the kernel that a line launches, if `word`, which was clicked, is its name. Whether it is. */
  #openKernel(side, line, word) {
    const kernel = matched(this.docs[side]?.kind, "opens", this.docs[side]?.texts[line] ?? "")?.[1];
    const view = kernel === word ? this.shown.opens[kernel] : undefined;
    if (view !== undefined) this.#showView(view);
    return view !== undefined;
  }

  /** The same for the current line, whatever the word. */
  #openCurrent() {
    const side = this.panes[0].element === document.activeElement ? 0 : 1;
    const { texts, current, kind } = this.panes[side];
    const line = this.panes[side].lineAt(current);
    this.#openKernel(side, line, matched(kind, "opens", texts[line] ?? "")?.[1] ?? "");
  }

  /** What the operation of a line does, after its name. */
  #operationOf({ kind, texts }, line) {
    const word = operationWord(texts[line], kind);
    const meaning = this.instructions.meaning(word, kind);
    return meaning && `${word}: ${meaning}`;
  }

  // The panes

  #showStages() {
    const compared = this.left === PREVIOUS;
    const wanted = [this.before, this.right];
    const found = wanted.map((stage) => (stage < 0 ? new Stage({}, "") : this.#stage(stage)));
    const facts = wanted.map((stage) => this.shown.stages[stage]);
    if (compared) {
      found[0] = this.#stage(this.right, PREVIOUS);
      facts[0] = { ...found[0]?.facts, kind: facts[1].kind };
    }
    this.panes.forEach((lines, side) => {
      const fact = facts[side];
      const parts =
        fact && found[side] && !found[side].problem
          ? [counted(fact.operations, nounOf(fact.kind)), duration(fact.seconds)]
          : [];
      lines.info.replaceChildren(...parts.filter(Boolean).map((part) => make("span", {}, part)));
      lines.pane.classList.toggle("is-waiting", !found[side]);
      lines.pane.classList.toggle("is-problem", Boolean(found[side]?.problem));
    });
    const { name } = facts[1];
    const sentence = this.shown.about[name.split(" %")[0]];
    this.about.replaceChildren(
      make(
        "span",
        { class: "sentence" },
        make("b", { title: this.glossary.sentence(name) }, name),
        " ",
        ...this.glossary.explained(sentence ?? ""),
      ),
      ...targetParts(found[1]?.target, (text) => this.#say(text)),
    );
    if (!found[0] || !found[1]) return; // Called again when the lines have arrived.
    const [left, right] = found;
    this.docs = found;
    this.source.open(this.shown.sources, compared ? left.facts.fresh : []);
    this.aligned = facts[0]?.kind === facts[1].kind && !left.problem && !right.problem;
    let rows = [];
    if (this.aligned) {
      rows = this.#aligned(left, right, facts[1].kind);
      if (this.onlyDifferences) rows = foldRows(rows, 3, ([, , mark]) => mark !== SAME);
    }
    this.search.find(`${this.view} ${this.shown.stages.filter((stage) => stage.operations !== null).length}`);
    rows = this.search.kept(rows);
    const isLabel = (side, line) => line >= 0 && matched(found[side].kind, "label", found[side].texts[line]);
    this.unlabelled.hidden = !TEXT_KINDS[found[1].kind]?.label;
    if (this.withoutLabels) rows = rows.filter(([a, b, mark]) => mark === FOLDED || !(isLabel(0, a) || isLabel(1, b)));
    const plain = (stage, side) =>
      this.search
        .kept(stage.texts.map((_, line) => (side ? [-1, line, SAME] : [line, -1, SAME])))
        .map((row) => [row[side], row[2], row[3]])
        .filter(([line]) => !this.withoutLabels || !isLabel(side, line));
    const other = (row, side) => (row[2] === CHANGED ? found[1 - side].texts[row[1 - side]] : row[3]);
    const sides = this.aligned
      ? [0, 1].map((side) =>
          rows.map((row) => [row[side], row[side] < 0 && row[2] !== FOLDED ? SAME : row[2], other(row, side)]),
        )
      : found.map((stage, side) => (stage.texts.length === 1 && !stage.texts[0] ? [] : plain(stage, side)));
    this.marks = rows.map((row) => row[2]);
    // Open where the stages differ, or else where the user's code begins.
    const first = (stage) =>
      this.aligned
        ? this.marks.findIndex((mark) => mark !== SAME && mark !== FOLDED)
        : stage.texts.findIndex((_, line) => stage.row(line) >= 0);
    this.hover = null;
    const counts = this.#counts(sides, found);
    this.panes.forEach((lines, side) => {
      const stage = found[side];
      lines.show({
        texts: stage.texts,
        kind: stage.kind,
        rows: sides[side],
        tags: (line) => (stage.row(line) >= 0 ? this.source.numbers[stage.row(line)] : ""),
        hues: (line) => stage.row(line),
        adjoint: (line) => stage.adjoints.has(line),
        first: Math.max(0, Math.min(sides[side].length, first(stage) - 3)),
        counts: counts[side],
      });
    });
    this.#tally();
    this.walker.trail = [];
    if (this.wanted) this.#settle();
    if (this.goal >= 0) this.panes[1].moveTo(this.panes[1].visualOf[this.goal], false);
    this.goal = -1;
    if (this.pinned) this.#reveal(this.pinned, null);
    this.#light();
    this.walker.follow();
    requestAnimationFrame(() => {
      this.painted += 1;
      this.root.dataset.painted = String(this.painted);
      this.root.dataset.shown = `${this.view}/${compared ? PREVIOUS : wanted[0]}/${wanted[1]}`;
      this.#note();
      this.#prefetch();
    });
  }

  /** The rows of two stages; kept, because people go back and forth. */
  #aligned(left, right, kind) {
    right.alignments ??= new Map();
    if (!right.alignments.has(left)) right.alignments.set(left, align(left, right, kind));
    return right.alignments.get(left);
  }

  /** Ask for the neighbours in the list, which are likely to be wanted next. */
  #prefetch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const stage of this.list.neighbours().filter((other) => !TEXT_KINDS[this.shown.stages[other].kind].native)) {
        this.#stage(stage);
        if (this.left === PREVIOUS) this.#stage(stage, PREVIOUS);
      }
    }, 30);
  }

  /** How many lines of text each row takes, if lines are wrapped: those of aligned stages stay side by side. */
  #counts(sides, stages) {
    if (!this.wraps) return [null, null];
    const [left, right] = this.panes.map((lines, side) => lines.counted(sides[side], stages[side].texts));
    if (!this.aligned) return [left, right];
    const most = left.map((count, row) => Math.max(count, right[row]));
    return [most, most];
  }

  /** There is another width for lines that are wrapped. */
  #layOut() {
    if (!this.wraps || !this.docs?.[0] || !this.docs[1]) return;
    const counts = this.#counts(
      this.panes.map((lines) => lines.rows),
      this.docs,
    );
    this.panes.forEach((lines, side) => {
      const first = lines.rowAt(lines.element.scrollTop);
      lines.layOut(counts[side]);
      lines.element.scrollTop = lines.topOf(first);
      lines.paint();
    });
  }

  #tally() {
    this.counts.replaceChildren(...tallied(this.marks));
    if (this.aligned && !this.counts.hasChildNodes()) this.counts.textContent = "no difference";
    this.fold.disabled = !this.aligned;
  }

  #scrolled(side, top) {
    const other = this.panes[1 - side].element;
    if (this.aligned && Math.abs(other.scrollTop - top) > 1) other.scrollTop = top;
    this.#note();
  }

  #togglePrevious() {
    if (this.shown.previous) this.#chooseStage(0, this.left === PREVIOUS ? "before" : PREVIOUS);
  }

  #toggleAlone() {
    this.#chooseStage(0, this.left === ALONE ? "before" : ALONE);
  }

  /** Switch what `name` says on or off, and the button that shows it; with `on`, before anything is shown. */
  #toggle(name, button, on) {
    this[name] = on ?? !this[name];
    button.setAttribute("aria-pressed", String(this[name]));
    if (on === undefined) this.#showStages();
  }

  // Panes that are folded away

  get hidden() {
    return PANES.filter((name) => this.body.classList.contains(`without-${name}`));
  }

  /** What a divider needs to fold a pane, where it can. */
  #folding(name, can = () => true) {
    const is = () => can() && this.hidden.includes(name);
    const to = (isHidden) => {
      if (!can() || isHidden === is()) return;
      this.#hide(name, isHidden);
      this.#note();
    };
    return { can, is, to };
  }

  #foldOf(name) {
    return make("button", {
      type: "button",
      class: "fold",
      "aria-label": `The ${name === "stages" ? "list of stages" : name}`,
      title: `Fold the ${name} away, or show them again`,
      onclick: () => {
        this.#hide(name, !this.hidden.includes(name));
        this.#note();
      },
    });
  }

  #hide(name, isHidden) {
    this.body.classList.toggle(`without-${name}`, isHidden);
    this.folds[PANES.indexOf(name)].setAttribute("aria-expanded", String(!isHidden));
  }

  /** Go to where the next run of differences begins. */
  #jump(direction) {
    if (!this.aligned) return;
    const starts = differencesIn(this.marks);
    const pane = this.panes[0].element === document.activeElement ? this.panes[0] : this.panes[1];
    const here = pane.current >= 0 ? pane.current : pane.rowAt(pane.element.scrollTop + 9) + (direction > 0 ? 2 : 4);
    const target = direction > 0 ? starts.find((row) => row > here) : starts.findLast((row) => row < here);
    if (target === undefined) return;
    pane.element.scrollTop = pane.topOf(Math.max(0, target - 3));
    pane.moveTo(target);
  }

  // Highlights

  #look(side, line) {
    const focus = this.focus;
    const stage = this.docs?.[side];
    if (!stage) return "";
    if (this.search.hits?.[side].has(line)) return "hit";
    if (!focus) return "";
    if (focus.side === side && focus.line === line) return "strong";
    if (focus.tie && stage.tie(line) === focus.tie) return "strong";
    if (focus.rows.size === 0) return "";
    if (focus.column >= 0 && stage.row(line) === focus.row) {
      const [begin, end] = stage.columns(line);
      if (begin === focus.column && (end === focus.end || end < 0 || focus.end < 0)) return "strong";
    }
    return stage.rows(line).some((row) => focus.rows.has(row)) ? "lit" : "";
  }

  /** What a line of a stage points at. */
  #stageFocus(side, line) {
    const stage = this.docs[side];
    const [column, end] = stage.columns(line);
    return {
      side,
      line,
      rows: new Set(stage.rows(line)),
      row: stage.row(line),
      column: column ?? -1,
      end: end ?? -1,
      tie: stage.tie(line),
    };
  }

  #pointSource(row, column) {
    this.#hover(sourceFocus(this.docs, row, column));
    if (column < 0) this.#reveal(this.hover, this.source);
  }

  #pointStage(side, line, column) {
    if (!this.docs?.[side]) return;
    this.#hover(this.#stageFocus(side, line));
    if (column < 0) this.#reveal(this.hover, this.panes[side]);
  }

  #hover(focus) {
    const same = (a, b) => a === b || (a && b && a.side === b.side && a.line === b.line && a.column === b.column);
    if (same(focus, this.hover)) return;
    this.hover = focus;
    this.#light();
  }

  #choose(focus, from) {
    const same = this.pinned && this.pinned.side === focus.side && this.pinned.line === focus.line;
    if (same) this.#unpin();
    else this.#pin(focus, from);
  }

  #pin(focus, from) {
    this.pinned = focus;
    this.hover = null;
    this.#light();
    this.#note();
    this.walker.follow();
    this.#reveal(focus, from);
  }

  #unpin() {
    this.pinned = this.hover = null;
    this.#light();
    this.#note();
    this.walker.follow();
  }

  /** Bring the first line that belongs to `focus` into sight wherever none is. */
  #reveal(focus, from) {
    if (from !== this.source && focus.row >= 0) this.source.reveal(focus.row);
    const sides = (this.aligned ? [1, 0] : [0, 1]).filter(
      (side) => this.panes[side] !== from && !(this.aligned && this.panes.includes(from)),
    );
    for (const side of sides) {
      const lines = [...focus.rows]
        .flatMap((row) => this.docs[side]?.byRow.get(row) ?? [])
        .filter((line) => this.panes[side].visualOf[line] >= 0);
      const chief = lines.filter((line) => this.#look(side, line) === "strong");
      const wanted = chief.length ? chief : lines;
      if (!wanted.length) continue;
      if (!wanted.some((line) => this.panes[side].inSight(line))) this.panes[side].reveal(Math.min(...wanted));
      if (this.aligned) break; // The other pane scrolls along.
    }
  }

  #light() {
    for (const lines of [this.source, ...this.panes]) lines.dress();
    const focus = this.focus;
    if (!this.docs?.[0] || !this.docs[1]) return;
    if (!focus) {
      this.#say(
        this.aligned || this.left === ALONE
          ? `${HINT}${this.shown.previous ? ` · r ${this.shown.compared || "previous run"}` : ""}`
          : this.docs.some((stage) => stage.problem)
            ? "Nothing to compare"
            : "Different languages: matched by source line",
      );
      return;
    }
    const numbers = [...focus.rows].map((row) => this.source.numbers[row]);
    if (!numbers.length) {
      this.#say(focus.tie ? `${focus.tie}: generated by the compiler` : "generated by the compiler");
      return;
    }
    const many = this.docs.map((stage) => new Set([...focus.rows].flatMap((row) => stage.byRow.get(row) ?? [])).size);
    const place =
      numbers.length > 1 && focus.side >= 0
        ? `line ${numbers[0]}, from ${numbers.slice(1).join(", ")}`
        : `line ${numbers.join(", ")}`;
    const found = this.left === ALONE ? counted(many[1], "line") : `${many[0]} left, ${many[1]} right`;
    const meaning = focus.side >= 0 ? this.#operationOf(this.panes[focus.side], focus.line) : "";
    this.#say(`${this.pinned && !this.hover ? "Pinned " : ""}${place}: ${found}${meaning && ` · ${meaning}`}`);
  }

  /** The name under the pointer: marked wherever it stands, with where it is bound and how often it is used. */
  #name(name, side, line) {
    if (name === this.variable) return;
    this.variable = name;
    for (const lines of this.panes) lines.dress();
    if (this.shown.opens?.[name]) {
      this.#say(`${name}: click for its stages (o)`);
      return;
    }
    const names = name && line >= 0 && this.docs?.[side]?.names;
    if (!names) return;
    const definition = names.definition(name, line);
    const bound = definition === line ? "bound here" : "click for its definition";
    const uses = counted(names.usesOf(name, line).length, "use");
    this.#say(`${name}: ${definition < 0 ? "not bound here" : bound}, ${uses}`);
  }

  #say(text) {
    if (this.words.textContent !== text) this.words.textContent = text;
  }

  #rootKey(event) {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.target.tagName === "INPUT" ||
      event.target.tagName === "SELECT"
    )
      return;
    if (event.key === "n") this.#jump(1);
    else if (event.key === "p") this.#jump(-1);
    else if (event.key === "r") this.#togglePrevious();
    else if (event.key === "c") this.#toggleAlone();
    else if (event.key === "o") this.#openCurrent();
    else if ("dub".includes(event.key)) this.walker.walk(event.key);
    else if (event.key === "/") this.search.input.focus();
    else if (event.key === "Escape") this.#unpin();
    else return;
    event.preventDefault();
  }
}

export default {
  render({ model, el }) {
    const explorer = new Explorer(model, el);
    return () => explorer.close();
  },
};
