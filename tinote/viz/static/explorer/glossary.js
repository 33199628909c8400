// The words of the stages explained: where they stand in a sentence or in a line of IR, and all of them in a panel.

class Glossary {
  /** `terms` are [name, sentence, other forms]; `opened()` is called when a word was asked for. */
  constructor(terms, opened) {
    this.terms = terms;
    this.opened = opened;
    this.wanted = "";
    this.nameOf = new Map(terms.flatMap(([name, , also]) => [name, ...also].map((form) => [form.toLowerCase(), name])));
    const forms = [...this.nameOf.keys()].sort((a, b) => b.length - a.length); // The longest one that fits.
    this.pattern = forms.length ? new RegExp(`(?<![\\w-])(${forms.join("|")})s?(?![\\w-])`, "gi") : /(?!)/g;
  }

  /** The sentence about a word, "" for none. */
  sentence(word) {
    const form = word.toLowerCase();
    const found = this.nameOf.get(form) ?? this.nameOf.get(form.replace(/s$/, ""));
    return this.terms.find(([name]) => name === found)?.[1] ?? "";
  }

  /** A text whose words say what they mean; each one that is known is marked once. */
  explained(text) {
    const parts = [];
    const seen = new Set();
    let at = 0;
    for (const match of text.matchAll(this.pattern)) {
      const name = this.nameOf.get(match[1].toLowerCase());
      if (seen.has(name)) continue;
      seen.add(name);
      const sentence = this.sentence(name);
      const open = () => {
        this.wanted = name;
        this.opened();
      };
      parts.push(
        text.slice(at, match.index),
        make("button", { type: "button", class: "term", tabindex: -1, title: sentence, onclick: open }, match[0]),
      );
      at = match.index + match[0].length;
    }
    return [...parts, text.slice(at)];
  }

  draw() {
    const entry = ([name, sentence]) =>
      make(
        "div",
        name === this.wanted ? { class: "entry is-wanted", "aria-current": "true" } : { class: "entry" },
        make("dt", {}, name),
        make("dd", {}, sentence),
      );
    return make("dl", { class: "glossary", "aria-label": "Glossary" }, ...this.terms.map(entry));
  }
}
