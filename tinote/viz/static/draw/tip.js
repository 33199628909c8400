// What is under the pointer, in words next to it.

/**
 * Where a mouse rests on `canvas` for `wait` milliseconds, `ask(place)`, which may give words at once; gives
 * `tell(words)`, which shows what is there next to it, what takes that away, and the place that it rests `at`.
 */
function hoverTip(canvas, ask, wait = 0) {
  const tip = make("div", { class: "tinote-tip", hidden: true });
  const help = canvas.title;
  let rest = 0;
  let at = null;
  const hide = () => {
    clearTimeout(rest);
    at = null;
    tip.hidden = true;
    canvas.title = help;
  };
  const look = (box, x, y) => {
    at = [x / box.width, 1 - y / box.height];
    const [right, lower] = [x > 0.5 * box.width, y > 0.8 * box.height];
    Object.assign(tip.style, { left: `${canvas.offsetLeft + x}px`, top: `${canvas.offsetTop + y}px` });
    const [before, after] = ["calc(-100% - 8px)", "14px"];
    tip.style.transform = `translate(${right ? before : after}, ${lower ? before : after})`;
    tell(ask(at));
  };
  canvas.addEventListener("pointermove", (event) => {
    if (wait) hide();
    if (event.pointerType !== "mouse" || event.buttons) return;
    const box = canvas.getBoundingClientRect();
    const place = [box, event.clientX - box.left, event.clientY - box.top];
    if (wait) rest = setTimeout(look, wait, ...place);
    else look(...place);
  });
  for (const end of ["pointerleave", "pointerdown", "wheel", "keydown"]) canvas.addEventListener(end, hide);
  const tell = (words) => {
    if (!at) return; // It has moved on meanwhile.
    if (words === undefined) return; // The answer comes later.
    tip.textContent = words;
    tip.hidden = !words;
    canvas.title = words ? "" : help; // The browser's own tip would lie over this one.
  };
  /** What is there now, at the same place. */
  const again = () => {
    if (at) tell(ask(at));
  };
  return { tip, tell, hide, again, at: () => at };
}
