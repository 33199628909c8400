// The source above the panes: the kernel's own text, then those of the device functions that it inlines.

/** Lines of the source, under a heading of their own. `numbers` are those in the file or cell, row by row. */
class SourceLines extends Lines {
  constructor(host) {
    super("Source", host);
    this.place = make("span", { class: "place" });
    this.section = make(
      "div",
      { class: "source", role: "group", "aria-label": "Source" },
      make("h2", {}, "Source", this.place),
      this.element,
    );
  }

  /** Show these texts; rows that are `fresh` are marked as new. */
  open(sources, fresh = []) {
    const shown = `${fresh}`;
    if (sources === this.sources && shown === this.fresh) return;
    const first = sources === this.sources ? this.rowAt(this.element.scrollTop) : 0;
    this.sources = sources;
    this.fresh = shown;
    const several = sources.length > 1;
    this.numbers = sources.flatMap((text) => text.lines.map((_, index) => text.first + index));
    const marked = new Set(fresh);
    const rows = [];
    let row = 0;
    for (const text of sources) {
      if (several) rows.push([-1, FOLDED, [text.name, text.place].filter(Boolean).join(", ")]);
      for (const _ of text.lines) rows.push([row, marked.has(row++) ? NEW : SAME]);
    }
    const place = several ? "" : (sources[0]?.place ?? "");
    this.place.textContent = place.replace(/^.*[\\/]/, ""); // Of a path, the file.
    this.place.title = place;
    this.section.classList.toggle("has-marks", marked.size > 0);
    this.show({
      texts: sources.flatMap((text) => text.lines),
      kind: "source",
      rows,
      tags: (line) => this.numbers[line],
      hues: (line) => line,
      first,
    });
  }
}
