// The extension for JupyterLab and Notebook 7: an output that holds a view of tinote shows it live where its kernel and
// its model are, and else the picture that was seen last, which is kept in the notebook up to date.
//
// This file is its own source, and nothing is built of it. It is a container of webpack's module federation, the form
// in which JupyterLab loads extensions that are installed ready made: `init` is given which packages the page shares,
// `get` gives the one module that there is.
//
// Of what a notebook holds nothing is executed here: a picture is shown as JupyterLab shows pictures, and the live view
// comes from the kernel, through the front end's own renderer of widgets, in outputs that the front end trusts. Where
// there is no kernel, and the output holds the view's program as data, it plays: in a frame without an origin, whose
// policy allows the scripts of this extension and no request, by WebAssembly that has nothing but memory. In a notebook
// that is not trusted the picture is shown until somebody plays it.

(() => {
  const VIEW = "application/vnd.tinote.view+json";
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const PICTURE = "image/png";
  const RANK = -20; // Before widgets, which are at -10.
  const HINT = "run the cell to make it live";

  const FOLDER = globalThis.document?.currentScript?.src; // Where this file and what plays views come from.
  const POLICY = (nonce) => `default-src 'none'; script-src 'nonce-${nonce}' 'wasm-unsafe-eval'; worker-src blob:;
    style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'`;
  const LONGEST = 4096; // Pixels that a frame may be high.
  const MOST_TEXT = 16e6; // Characters of a program that are looked at.

  let scope = {};

  /** A package that the page shares, in the version that it uses. */
  async function shared(name) {
    const versions = Object.entries(scope[name] ?? {});
    if (!versions.length) throw new Error(`tinote: this front end does not share ${name}`);
    const newer = (one, other) => one[0].localeCompare(other[0], "en", { numeric: true }) >= 0;
    const [, found] =
      versions.find(([, { loaded }]) => loaded) ?? versions.reduce((one, other) => (newer(one, other) ? one : other));
    return (await found.get())();
  }

  // What is seen, as a picture

  const MARGIN = 8;
  const EDGE = "#8a9098"; // 3:1 from white pages and from black ones.
  const LARGEST_GAP = 12;
  const MOST_ENLARGED = 2; // Times that a view is smaller than it was made.
  const STRIP = { height: 20, font: 12 };
  const LIVE = ".tinote-view, .tinote-gui"; // Views that the kernel sends frames to.
  const CODE = ".tinote-explorer, .tinote-rules"; // Until somebody uses them, their first picture stays.
  const PAINTED = `${LIVE}, ${CODE}, .widget-slider`;
  const LEFT_OUT = `button:not(:is(${CODE}) button), details:not([open]) > :not(summary), .tinote-controls,
    .tinote-timeline, .tinote-timeline-text, .tinote-announce, .tinote-notice, .tinote-tip, .tinote-kept,
    .tinote-explorer .full`;

  /** The part that two rectangles have in common. */
  function common(one, other) {
    const [left, top] = [Math.max(one.left, other.left), Math.max(one.top, other.top)];
    return { left, top, right: Math.min(one.right, other.right), bottom: Math.min(one.bottom, other.bottom) };
  }

  const opaque = (color) => !["transparent", "rgba(0, 0, 0, 0)"].includes(color);

  /** The colour that lies over all of a box, by a shadow inside of it as large as the window. */
  const tint = (style) => /^(.*?\)).*\d{3,}px inset$/.exec(style.boxShadow)?.[1];

  /** Whether anything of `node` is seen but what stands in it. */
  function paintsItself(node, style) {
    const edges = ["Top", "Right", "Bottom", "Left"].some((side) => parseFloat(style[`border${side}Width`]));
    return edges || opaque(style.backgroundColor) || tint(style) || node instanceof HTMLCanvasElement;
  }

  /** Paint the background of `node`, what it shows if it is a canvas, and its edges. */
  function paintBox(context, node, box, style) {
    const width = (side) => parseFloat(style[`border${side}Width`]) || 0;
    const [above, right, below, left] = ["Top", "Right", "Bottom", "Left"].map(width);
    for (const color of [style.backgroundColor, tint(style)]) {
      if (!color || !opaque(color)) continue;
      context.fillStyle = color;
      context.beginPath();
      context.roundRect(box.left, box.top, box.width, box.height, parseFloat(style.borderTopLeftRadius) || 0);
      context.fill();
    }
    if (node instanceof HTMLCanvasElement && node.width && node.height)
      context.drawImage(node, box.left + left, box.top + above, box.width - left - right, box.height - above - below);
    const edge = (color, ...rectangle) => {
      context.fillStyle = color;
      context.fillRect(...rectangle);
    };
    edge(style.borderTopColor, box.left, box.top, box.width, above);
    edge(style.borderRightColor, box.right - right, box.top, right, box.height);
    edge(style.borderBottomColor, box.left, box.bottom - below, box.width, below);
    edge(style.borderLeftColor, box.left, box.top, left, box.height);
  }

  /** The picture that stands for a view until somebody has played longer, if there is one. */
  function aheadOf(view) {
    const { tinoteAhead: ahead, dataset } = view;
    return dataset.state !== "playing" && Number(dataset.step) < ahead?.step ? ahead : null;
  }

  /** This picture, and the step that it is of, in the place of what a view shows. */
  function* aheadOfTime({ step, ...ahead }, view, clip) {
    const image = ahead.image();
    const around = view.querySelector(".tinote-group").getBoundingClientRect();
    const scale = Math.min(1, around.width / image.width, around.height / image.height);
    const box = new DOMRect(around.left, around.top, scale * image.width, scale * image.height);
    const paint = (context) => context.drawImage(image, box.left, box.top, box.width, box.height);
    if (!box.width || !box.height) return;
    yield { box, clip, paint };
    const line = new DOMRect(box.left, box.bottom + 2, box.width, STRIP.height);
    const said = `step ${step.toLocaleString("en")}`;
    const style = getComputedStyle(view.querySelector(".tinote-status"));
    yield { box: line, clip: line, paint: (context) => paintWord(context, said, line, style) };
  }

  /** The strokes that paint what `node` shows, each with the rectangle that it fills. */
  function* strokes(node, clip) {
    if (node.nodeType === Node.TEXT_NODE) {
      yield* words(node, clip);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(LEFT_OUT)) return;
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility === "hidden") return;
    const ahead = aheadOf(node);
    if (ahead) {
      yield* aheadOfTime(ahead, node, clip);
      return;
    }
    const box = node.getBoundingClientRect();
    if (box.width && box.height && paintsItself(node, style))
      yield { box, clip, paint: (context) => paintBox(context, node, box, style) };
    const inside = style.overflow === "visible" ? clip : common(clip, box);
    yield* decoration(node, "::before", inside);
    if (node instanceof SVGGeometryElement) yield { box, clip, paint: (context) => paintShape(context, node, style) };
    if (node instanceof HTMLSelectElement) yield* control(node, node.selectedOptions[0]?.text, box, inside, style);
    else if (node instanceof HTMLInputElement) yield* control(node, node.value || node.placeholder, box, inside, style);
    else for (const child of node.childNodes) yield* strokes(child, inside);
    yield* decoration(node, "::after", inside);
  }

  /** What a style sheet puts at a place of `node`. */
  function* decoration(node, which, clip) {
    const style = getComputedStyle(node, which);
    if (style.content === "none" || style.position !== "absolute" || style.display === "none") return;
    const [around, own] = [node.getBoundingClientRect(), getComputedStyle(node)];
    const [left, top, width, height] = ["left", "top", "width", "height"].map((name) => parseFloat(style[name]));
    const [x, y] = [around.left + parseFloat(own.borderLeftWidth), around.top + parseFloat(own.borderTopWidth)];
    const box = new DOMRect(x + left, y + top, width, height);
    yield { box, clip, paint: (context) => paintBox(context, node, box, style) };
    yield { box, clip, paint: (context) => paintWord(context, style.content.slice(1, -1), box, style) };
  }

  /** The rail and the knob of a slider. */
  function paintSlider(context, node, box, style) {
    const [low, high] = [Number(node.min || 0), Number(node.max || 100)];
    const part = high > low ? (Number(node.value) - low) / (high - low) : 0;
    const middle = box.top + box.height / 2;
    const knob = box.left + 8 + part * (box.width - 16);
    context.fillStyle = context.strokeStyle = style.accentColor === "auto" ? style.color : style.accentColor;
    context.lineWidth = 4;
    context.lineCap = "round";
    context.globalAlpha = 0.4;
    context.beginPath();
    context.moveTo(box.left + 3, middle);
    context.lineTo(box.right - 3, middle);
    context.stroke();
    context.globalAlpha = 1;
    context.beginPath();
    context.arc(knob, middle, 7, 0, 7);
    context.fill();
  }

  /** A box that is ticked or not, or the colour that is chosen. */
  function paintMark(context, node, box, style) {
    context.strokeStyle = context.fillStyle = style.color;
    const side = Math.min(box.width, box.height);
    context.strokeRect(box.left + 0.5, box.top + 0.5, (node.type === "color" ? box.width : side) - 1, box.height - 1);
    if (node.type === "color") context.fillStyle = node.value;
    if (node.type === "color" || node.checked)
      context.fillRect(box.left + 3, box.top + 3, (node.type === "color" ? box.width : side) - 6, box.height - 6);
  }

  /** What a form's element shows besides text, by its type. */
  const SHOWN = { range: paintSlider, checkbox: paintMark, radio: paintMark, color: paintMark };

  /** What is chosen or typed in a form's element. */
  function* control(node, text, box, clip, style) {
    if (SHOWN[node.type]) {
      yield { box, clip, paint: (context) => SHOWN[node.type](context, node, box, style) };
      return;
    }
    const inner = new DOMRect(box.left + parseFloat(style.paddingLeft) + 4, box.top, box.width, box.height);
    if (text) yield { box: inner, clip: common(clip, box), paint: (context) => paintWord(context, text, inner, style) };
  }

  function paintShape(context, shape, style) {
    const [path, onPage] = [new Path2D(), shape.getScreenCTM()];
    path.addPath(new Path2D(shape.getAttribute("d") ?? ""), onPage);
    const scale = style.vectorEffect === "non-scaling-stroke" ? 1 : Math.hypot(onPage.a, onPage.b);
    [context.fillStyle, context.strokeStyle] = [style.fill, style.stroke];
    context.lineWidth = scale * parseFloat(style.strokeWidth);
    context.globalAlpha = style.fillOpacity;
    if (style.fill !== "none") context.fill(path);
    context.globalAlpha = 1;
    if (style.stroke !== "none") context.stroke(path);
  }

  /** A text in the middle of the height of `box`. */
  function paintWord(context, word, box, style) {
    context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    context.letterSpacing = style.letterSpacing === "normal" ? "0px" : style.letterSpacing;
    context.fillStyle = style.color;
    const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = context.measureText(word);
    context.fillText(word, box.left, box.top + (box.height - above - below) / 2 + above);
  }

  /** The strokes of a text, a word at a time: where lines break, only the browser knows. */
  function* words(text, clip) {
    const style = getComputedStyle(text.parentElement);
    for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const box = range.getBoundingClientRect();
      const shown = style.textTransform === "uppercase" ? word.toUpperCase() : word;
      if (box.width) yield { box, clip, paint: (context) => paintWord(context, shown, box, style) };
    }
  }

  /** The colour behind `node`. */
  function ground(node) {
    for (let one = node; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (opaque(color)) return color;
    }
    return "#ffffff";
  }

  /** By how much each of the strokes moves up when rows are taken out where nothing is drawn: buttons stood there. */
  function closedUp(drawn) {
    const order = [...drawn.keys()].sort((one, other) => drawn[one].seen.top - drawn[other].seen.top);
    const moved = new Array(drawn.length);
    let [reached, total] = [drawn[order[0]].seen.top, 0];
    for (const at of order) {
      total += Math.max(0, drawn[at].seen.top - reached - LARGEST_GAP);
      moved[at] = total;
      reached = Math.max(reached, drawn[at].seen.bottom);
    }
    return moved;
  }

  /**
   * What `root` shows as a PNG file in base 64, and how wide that is if it has more than a pixel for each of the page.
   * Nothing where it shows no frame of a view, is not laid out, or shows code and nobody has used it (`isUsed`).
   */
  function pictureOf(root, isUsed) {
    const empty = (view) => view.matches(LIVE) && !Number(view.dataset.painted);
    const isCode = root.querySelector(CODE) !== null;
    if (!root.querySelector(PAINTED) || (isCode && !isUsed)) return null;
    // Code for sharp text, and a view at the size that it was made for, however narrow the window is.
    const views = [...root.querySelectorAll(".tinote-view")];
    const narrow = views.map((view) => {
      const [made, shown] = [parseFloat(view.style.getPropertyValue("--tinote-width")), view.getBoundingClientRect()];
      return made > shown.width && shown.width ? made / shown.width : 1;
    });
    const scale = isCode ? 2 : Math.max(1, ...narrow);
    if (scale > MOST_ENLARGED) return null; // Of a column of letters nobody wants a picture.
    if ([...root.querySelectorAll(LIVE)].some(empty)) return null;
    const whole = root.getBoundingClientRect();
    if (!whole.width || !whole.height) return null;
    const drawn = [...strokes(root, whole)]
      .map((stroke) => ({ ...stroke, seen: common(stroke.box, stroke.clip) }))
      .filter(({ seen }) => seen.right > seen.left && seen.bottom > seen.top);
    if (!drawn.length) return null; // Scrolled away inside of something, or folded.
    const reach = (side, most) => Math[most](...drawn.map(({ seen }) => seen[side]));
    const [left, top] = [Math.floor(reach("left", "min")) - MARGIN, Math.floor(reach("top", "min")) - MARGIN];
    const moved = closedUp(drawn);
    const canvas = document.createElement("canvas");
    const width = Math.ceil(reach("right", "max")) + MARGIN - left;
    const below = Math.ceil(Math.max(...drawn.map(({ seen }, at) => seen.bottom - moved[at]))) - top;
    [canvas.width, canvas.height] = [scale * width, scale * (below + STRIP.height)];
    const context = canvas.getContext("2d");
    context.fillStyle = ground(root);
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.strokeStyle = EDGE;
    context.lineWidth = 2 * scale; // Half of it is outside.
    context.strokeRect(0, 0, canvas.width, canvas.height);
    context.scale(scale, scale);
    context.translate(-left, -top);
    drawn.forEach(({ seen, paint }, at) => {
      context.save();
      context.translate(0, -moved[at]);
      context.beginPath();
      context.rect(seen.left, seen.top, seen.right - seen.left, seen.bottom - seen.top);
      context.clip();
      paint(context);
      context.restore();
    });
    const style = getComputedStyle(root);
    context.font = `${STRIP.font}px ${style.fontFamily}`;
    context.fillStyle = style.color;
    context.globalAlpha = 0.74;
    context.fillText(HINT, left + MARGIN, top + below + STRIP.height - 6);
    return { data: canvas.toDataURL(PICTURE).split(",")[1], ...(isCode && { width }) };
  }

  // Views that play

  const files = new Map();

  /** The parts of a file next to this one, as texts. */
  async function partsOf(name) {
    const load = async () => {
      const found = await fetch(new URL(name, FOLDER));
      if (!found.ok) throw new Error(`tinote: ${name} is missing`);
      const parts = Object.entries(await found.json());
      return Object.fromEntries(parts.map(([key, lines]) => [key, lines.join("\n")]));
    };
    if (!files.has(name)) files.set(name, load());
    return files.get(name);
  }

  /** The programs of the views in an output, if it holds such; what they are is seen where they run. */
  function programsIn(output) {
    const views = output.data[VIEW]?.views;
    const isText = (one) => typeof one === "string" && one.length > 0 && one.length < MOST_TEXT;
    return Array.isArray(views) && views.length > 0 && views.length <= 16 && views.every(isText) ? views : null;
  }

  /** How the page looks around `node`. */
  const look = (node) => ({ dark: document.body.dataset.jpThemeLight === "false", paper: ground(node) });

  /**
   * A frame in which `texts` run, in `parent`; with `plays` they do at once. It lies over what is there until it has
   * painted, and calls `painted` then, or `failed`. Gives what takes it away.
   */
  function player(parent, texts, { plays, label, painted, failed }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.title = label;
    frame.className = "tinote-player";
    Object.assign(frame.style, { border: "0", width: "100%", height: "100%", position: "absolute", inset: "0" });
    frame.style.opacity = "0";
    frame.style.pointerEvents = "none";
    let isGone = false;
    let theme = null;
    const take = () => {
      isGone = true;
      theme?.disconnect();
      frame.remove();
    };
    const begin = async () => {
      const { styles, first, page, engine } = await partsOf("player.json");
      if (isGone) return;
      const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join(
        "",
      );
      frame.srcdoc = `<!doctype html><html lang="en"><head><meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="${POLICY(nonce)}"><style>${styles}</style></head>
        <body class="tinote-article tinote-player">
        <script nonce="${nonce}">(() => { const NONCE = "${nonce}";\n${first}\n})();</script></body></html>`;
      const begun = () => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = ({ data }) => {
          if (isGone) return;
          const height = Math.ceil(Number(data?.height));
          if (height >= 0) frame.dataset.height = String(Math.min(Math.max(height, 40), LONGEST));
          if (data?.painted === true) {
            Object.assign(frame.style, { position: "static", opacity: "1", pointerEvents: "", display: "block" });
            painted();
          }
          if (frame.style.position === "static") frame.style.height = `${frame.dataset.height}px`;
          if (typeof data?.failed === "string") failed();
        };
        theme = new MutationObserver(() => setTimeout(() => port1.postMessage(look(parent)), 60));
        theme.observe(document.body, { attributeFilter: ["data-jp-theme-name", "data-jp-theme-light"] });
        frame.contentWindow.postMessage({ texts, page, engine, plays, ...look(parent) }, "*", [port2]);
      };
      frame.addEventListener("load", begun, { once: true });
      parent.append(frame);
    };
    begin().catch((error) => {
      console.warn(error);
      if (!isGone) failed();
    });
    return take;
  }

  // The renderer

  /** Of outputs in the notebook whose renderers are `registry`: one that shows a view. */
  const rendererIn = ({ Panel }) =>
    class extends Panel {
      constructor(registry, views, store) {
        super();
        this.addClass("tinote-output");
        [this.registry, this.views, this.store] = [registry, views, store];
        this.views.add(this);
        this.live = null;
        this.still = null;
        this.identity = "";
        this.wasLive = false;
        this.last = null; // What was seen when it was taken off the page, or when it paused.
        this.isPlaying = false;
        this.player = null; // What takes away the frame in which the view plays.
        this.node.style.position = "relative";
        this.sight = new IntersectionObserver(([seen]) => {
          this.isSeen = seen.isIntersecting;
          this.choose();
        });
        this.sight.observe(this.node);
        this.changes = new MutationObserver(() => this.followed());
        this.changes.observe(this.node, { subtree: true, attributeFilter: ["data-state"] });
        for (const kind of ["click", "change", "keydown"])
          this.node.addEventListener(kind, () => (this.isUsed = true), { capture: true });
      }

      async renderModel(output) {
        this.output = output;
        const identity = output.trusted ? output.data[WIDGET]?.model_id : "";
        if (typeof identity !== "string" || identity !== this.identity) this.begin(identity);
        await this.showPicture(output);
      }

      /** Another output, or another view in it: nothing is live yet. */
      begin(identity) {
        this.arrivals?.disconnect();
        this.live?.dispose();
        this.endPlayer();
        [this.live, this.factory, this.wasLive, this.last, this.isUsed] = [null, null, false, null, false];
        [this.isSought, this.hasFailed] = [false, false];
        this.identity = typeof identity === "string" ? identity : "";
        this.show();
        this.connect();
      }

      /**
       * Ask for the live view; it comes, if it comes, when its model does. The notebook's own renderer of widgets comes
       * with its kernel and takes the place of one that knows no models.
       */
      connect() {
        const factory = this.registry.getFactory(WIDGET);
        if (!this.identity || !factory || factory === this.factory || this.wasLive) return;
        this.arrivals?.disconnect();
        this.live?.dispose();
        this.factory = factory;
        this.live = this.registry.createRenderer(WIDGET);
        this.arrivals = new MutationObserver(() => this.choose());
        this.arrivals.observe(this.live.node, { childList: true });
        this.insertWidget(0, this.live);
        this.isSought = true; // The model, of which it is not known yet whether there is one.
        const sought = this.live;
        this.live.renderModel(this.output).finally(() => {
          if (this.live === sought) this.isSought = false;
          this.choose();
        });
        this.choose();
      }

      async showPicture(output) {
        const kind = typeof output.data[PICTURE] === "string" ? PICTURE : "text/plain";
        const still = this.registry.createRenderer(kind);
        this.still?.dispose();
        this.still = still;
        this.addWidget(still);
        await still.renderModel(output);
        if (still.isDisposed) return;
        const about = output.metadata[PICTURE]?.alt;
        const image = still.node.querySelector("img");
        if (image) {
          image.alt = typeof about === "string" ? `${about}; ${HINT}` : HINT;
          Object.assign(image.style, { display: "block", margin: "0 auto" }); // In the middle, as the live view is.
        }
        this.choose();
      }

      /** Show the live view if it is there, else the picture. One that its kernel has closed leaves nothing. */
      choose() {
        if (this.isDisposed) return;
        const isLive = Boolean(this.live?.widgets?.length);
        if (this.wasLive && !isLive) this.hide();
        this.wasLive ||= isLive;
        this.node.dataset.live = String(isLive);
        if (this.live) this.live.node.style.display = isLive ? "" : "none";
        if (this.still) this.still.node.style.display = isLive || this.isPlayed ? "none" : "";
        if (isLive) this.endPlayer();
        else this.offerPlayer();
      }

      /** Have the view play if the output holds how: at once where that is trusted, else when somebody asks for it. */
      offerPlayer() {
        const texts = programsIn(this.output);
        if (!texts || !this.still || this.player || this.hasFailed || this.isSought || !FOLDER) return;
        if (!this.output.trusted) this.offerButton(texts);
        else if (this.isSeen) this.play(texts, !matchMedia("(prefers-reduced-motion: reduce)").matches);
      }

      offerButton(texts) {
        if (this.button) return;
        this.button = document.createElement("button");
        Object.assign(this.button, { type: "button", className: "tinote-run jp-Button", textContent: "▶ Play" });
        this.button.title = "Run this simulation here, without a kernel; it can reach nothing but its own memory";
        const style = { position: "absolute", top: "8px", left: "8px", padding: "4px 12px", cursor: "pointer" };
        Object.assign(this.button.style, style, { border: "1px solid var(--jp-border-color1)", borderRadius: "4px" });
        Object.assign(this.button.style, { background: "var(--jp-layout-color1)", color: "var(--jp-ui-font-color1)" });
        const start = () => this.play(texts, true);
        this.button.onclick = start;
        this.node.append(this.button);
        const image = this.still.node.querySelector("img");
        if (image) Object.assign(image, { onclick: start }).style.cursor = "pointer";
      }

      play(texts, plays) {
        if (this.player) return;
        this.button?.remove();
        this.node.dataset.player = "starting";
        this.player = player(this.node, texts, {
          plays,
          label: `${this.still.node.querySelector("img")?.alt ?? "live view"}`,
          painted: () => {
            this.isPlayed = true;
            this.node.dataset.player = "running";
            this.choose();
          },
          failed: () => {
            this.endPlayer();
            this.hasFailed = true;
            this.node.dataset.player = "failed";
            this.choose();
          },
        });
      }

      endPlayer() {
        this.player?.();
        this.button?.remove();
        [this.player, this.button, this.isPlayed] = [null, null, false];
        delete this.node.dataset.player;
      }

      /** A view that was playing no longer does: once its last frame is painted, that is what was seen. */
      followed() {
        const isPlaying = this.node.querySelector(`:is(${LIVE})[data-state=playing]`) !== null;
        if (this.isPlaying && !isPlaying) setTimeout(() => this.isDisposed || this.store(this), 400);
        this.isPlaying = isPlaying;
      }

      /** What is seen now, or was when it could be seen last. */
      seen() {
        if (this.isDisposed || !this.wasLive) return null;
        this.last = (this.isAttached && pictureOf(this.live.node, this.isUsed)) || this.last;
        return this.last;
      }

      /** How what is live runs without a kernel, if all of it does. */
      programs() {
        if (this.isDisposed || !this.wasLive) return null;
        const found = [...this.live.node.querySelectorAll(LIVE)].map((view) => view.tinoteProgram);
        return found.length && found.every(Boolean) ? found : null;
      }

      onBeforeDetach(message) {
        this.seen();
        super.onBeforeDetach(message);
      }

      dispose() {
        if (this.isDisposed) return;
        this.views.delete(this);
        this.changes.disconnect();
        this.sight.disconnect();
        this.arrivals?.disconnect();
        this.endPlayer();
        super.dispose();
      }
    };

  /** Put what `view` shows into the notebook's output in place of its picture, and how its parts run next to it. */
  function storePicture(cells, view) {
    const [picture, programs] = [view.seen(), view.programs()];
    const isNew = picture && picture.data !== view.output.data[PICTURE];
    const isMore = programs && JSON.stringify(programs) !== JSON.stringify(view.output.data[VIEW]?.views);
    if (!isNew && !isMore) return;
    for (const { type, outputs } of cells) {
      for (let at = 0; type === "code" && at < outputs.length; at += 1) {
        if (outputs.get(at) !== view.output) continue;
        const stored = view.output.toJSON();
        if (isNew) {
          const { data, ...size } = picture;
          const { width, ...about } = stored.metadata[PICTURE] ?? {};
          stored.data = { ...stored.data, [PICTURE]: data };
          stored.metadata = { ...stored.metadata, [PICTURE]: { ...about, ...size } };
        }
        if (isMore) stored.data = { ...stored.data, [VIEW]: { version: 1, views: programs } };
        outputs.set(at, stored);
        return;
      }
    }
  }

  const plugin = (lumino) => ({
    id: "tinote:views",
    description: "Shows views of tinote: live where their kernel is, else as the picture that was seen last.",
    autoStart: true,
    activate: (app) => {
      const Renderer = rendererIn(lumino);
      app.docRegistry.addWidgetExtension("Notebook", {
        createNew: (panel, context) => {
          const views = new Set();
          const registry = panel.content.rendermime;
          const store = (view) => storePicture(context.model.cells, view);
          const createRenderer = () => new Renderer(registry, views, store);
          // As safe as the picture: what is live needs an output that is trusted.
          registry.addFactory({ safe: true, mimeTypes: [VIEW], createRenderer }, RANK);
          const connect = () => views.forEach((view) => view.connect());
          context.sessionContext.statusChanged.connect(connect);
          context.saveState.connect((_, state) => {
            if (state === "started") [...views].forEach(store);
          });
        },
      });
    },
  });

  const container = {
    init: (share) => {
      scope = share;
    },
    get: async (name) => {
      if (name !== "./extension") throw new Error(`tinote: there is no module ${name}`);
      const found = { __esModule: true, default: plugin(await shared("@lumino/widgets")) };
      return () => found;
    },
  };
  window._JUPYTERLAB = Object.assign(window._JUPYTERLAB ?? {}, { tinote: container });
})();
