"""How views look: pictures in both themes and at several widths, for a person to look at, and what cannot be read, hit,
or used with other means than eyes and a mouse.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from PIL import Image

from tests.browser.harness import Page
from tests.browser.waiting import poll

WIDTHS = (1280, 800)
PHONE = 390
ALL_WIDTHS = (PHONE, 800, 1280, 1600)
"""Those of pictures for a person to look at; a front end has no room for a notebook on the narrowest."""

THEMES = ("light", "dark")
LEAST_CONTRAST = 4.5
"""What WCAG 2 asks for text of an ordinary size."""

LEAST_EDGE = 3.0
"""What WCAG 2 asks for what shows where a control is."""

LEAST_TARGET = 24
"""Pixels that a control is wide and high at least."""

VIEWS = ".tinote-explorer, .tinote-rules, .tinote-gradients, .tinote-sweep, .tinote-view, .tinote-gui, .tinote-article"

SETTLE_SECONDS = 20.0
"""In which a page has taken on a new width and theme. What cannot be read after that stays so."""

PLACES = ".jp-OutputArea-output, body.tinote-page main, body.tinote-article main"
"""Where texts are read: what cells have shown, and a page with one view."""

COLORS = """
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const colors = new Map();
    const rgba = (color) => {
        if (!colors.has(color)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
            colors.set(color, [r, g, b, a / 255]);
        }
        return colors.get(color);
    };
    const around = (node) => (node ? [node, ...around(node.parentElement)] : []);
    const over = (under, [r, g, b, a]) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
    // The background, and an inset shadow that covers all of it.
    const fills = (node) => {
        const { backgroundColor, boxShadow } = getComputedStyle(node);
        const [, tint] = boxShadow.match(/^(.+\\)) 0px 0px 0px \\d{4,}[^,]*px inset$/) ?? [];
        return [backgroundColor, ...(tint ? [tint] : [])].map(rgba);
    };
    // By the formula of WCAG 2.
    const luminance = (color) => {
        const [r, g, b] = color.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratioOf = (...pair) => {
        const [dark, light] = pair.map(luminance).sort((one, two) => one - two);
        return (light + 0.05) / (dark + 0.05);
    };
"""

# Of the texts in these places: how many there are, and which cannot be read, as `[what is wrong, the text]`. What
# lies behind a text is found by asking the page for everything at its middle: what is transparent is laid over what is
# below. Behind a text that is scrolled away lies what it stands in.
READ = (
    """([places, leastContrast]) => {"""
    + COLORS
    + """
    const reachable = document.head.appendChild(document.createElement('style'));
    reachable.textContent = '* { pointer-events: auto !important; transition: none !important; }';
    const contrast = (node, ground) => {
        const opacity = around(node).reduce((product, one) => product * Number(getComputedStyle(one).opacity), 1);
        const [r, g, b, a] = rgba(getComputedStyle(node).color);
        return ratioOf(over(ground, [r, g, b, a * opacity]), ground);
    };
    const beyond = (box, edge) => box.right > edge.right + 1 || box.left < edge.left - 1;
    // Whether something around `node` cuts the text at `box`, or it does not fit where it stands; what scrolls may.
    const misfit = (node, box) => {
        const blocks = around(node).filter((one) => getComputedStyle(one).display !== 'inline');
        for (const [depth, block] of blocks.entries()) {
            const { overflowX } = getComputedStyle(block);
            if (['auto', 'scroll'].includes(overflowX) && block.scrollWidth > block.clientWidth) return '';
            const holds = depth === 0 || overflowX !== 'visible';
            if (holds && beyond(box, block.getBoundingClientRect())) return 'clipped';
        }
        return beyond(box, { left: 0, right: innerWidth }) ? 'outside' : '';
    };
    // What is drawn of a text: what scrolls shows a part of it.
    const cut = (node, box) => {
        const edges = around(node)
            .filter((one) => getComputedStyle(one).overflowX !== 'visible')
            .map((one) => one.getBoundingClientRect());
        return {
            left: Math.max(box.left, ...edges.map(({ left }) => left)),
            right: Math.min(box.right, ...edges.map(({ right }) => right)),
            top: Math.max(box.top, ...edges.map(({ top }) => top)),
            bottom: Math.min(box.bottom, ...edges.map(({ bottom }) => bottom)),
        };
    };
    let count = 0;
    const faults = [];
    for (const place of document.querySelectorAll(places)) {
        const seen = [];
        const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const node = texts.currentNode.parentElement;
            const text = texts.currentNode.textContent.trim();
            if (!text || node.closest(':disabled, style, option, .tinote-announce')) continue;
            const range = document.createRange();
            range.selectNodeContents(texts.currentNode);
            for (const box of [...range.getClientRects()].filter(({ width }) => width >= 1)) {
                count += 1;
                const layers = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                const inSight = layers.includes(node);
                const behind = inSight ? layers.slice(layers.indexOf(node)) : around(node);
                const ratio = contrast(node, behind.reverse().flatMap(fills).reduce(over, [255, 255, 255]));
                if (ratio < leastContrast) faults.push([`contrast ${ratio.toFixed(2)}`, text]);
                if (!inSight) continue;
                const wrong = misfit(node, box);
                if (wrong) faults.push([wrong, text]);
                const drawn = cut(node, box);
                for (const [other, words] of seen) {
                    const width = Math.min(drawn.right, other.right) - Math.max(drawn.left, other.left);
                    const height = Math.min(drawn.bottom, other.bottom) - Math.max(drawn.top, other.top);
                    if (width > 2 && height > 4) faults.push(['overlap', `${words} | ${text}`]);
                }
                seen.push([drawn, text]);
            }
        }
    }
    reachable.remove();
    return [count, faults];
}"""
)

# Of the controls in our views: how many there are, and which are too small to hit or have an outline too faint to see.
# Words that are buttons within a sentence are as high as it, and the parts of a graph as its zoom makes them; what has
# no outline is known by its text.
HIT = (
    """([views, leastSize, leastContrast]) => {"""
    + COLORS
    + """
    let count = 0;
    const faults = [];
    const ground = (node) => around(node).reverse().flatMap(fills).reduce(over, [255, 255, 255]);
    const kinds = 'button, select, summary, input:not([type=range], [type=checkbox], [type=color])';
    for (const control of document.querySelectorAll(`:is(${views}) :is(${kinds})`)) {
        const { width, height } = control.getBoundingClientRect();
        const { borderTopColor, borderTopWidth } = getComputedStyle(control);
        const isText = (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim();
        if (!width || control.disabled || control.closest('.graph')) continue;
        if ([...control.parentElement.childNodes].some(isText)) continue;
        const name = control.getAttribute('aria-label') || control.textContent.trim() || control.placeholder;
        count += 1;
        if (Math.min(width, height) < leastSize - 0.1) faults.push([`${width} × ${height}`, name]);
        const edge = rgba(borderTopColor);
        if (borderTopWidth === '0px' || edge[3] === 0 || control.matches('summary')) continue;
        for (const beside of [ground(control), ground(control.parentElement)]) {
            const ratio = ratioOf(over(beside, edge), beside);
            if (ratio < leastContrast) faults.push([`outline ${ratio.toFixed(2)}`, name]);
        }
    }
    return [count, faults];
}"""
)

# The parts of the page that match and show something: `[left, top, right, bottom]`.
SHOWN = """(selector) => [...document.querySelectorAll(selector)].map((node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return [left, top, right, bottom].map(Math.round);
}).filter(([left, top, right, bottom]) => right > left && bottom > top)"""


def unusable(page: Any) -> list[tuple[str, str]]:
    """Which buttons and fields of our views cannot be hit or seen, and why."""
    _, faults = page.evaluate(HIT, [VIEWS, LEAST_TARGET, LEAST_EDGE])
    return [(why, name) for why, name in faults]


def unreadable(page: Any, least: int = 8) -> list[tuple[str, str]]:
    """Which texts on the page cannot be read, and why: too little contrast, cut or outside of the window, or one over
    another. There must be `least` texts.
    """
    count, faults = page.evaluate(READ, [PLACES, LEAST_CONTRAST])
    missing = [(f"{count} texts, not {least}", "")] if count < least else []
    return missing + [(why, text) for why, text in faults]


FRONT_ENDS = ".jp-RenderedImage, .jp-RenderedSVG, .noUi-handle"
"""Parts of outputs that front ends make of pictures, without a name, and ipywidgets of its sliders."""

# What axe, the accessibility checker, finds in these places: `[the rule and what it asks, the part of the page]`.
CHECKED = """async ([places, exclude, options]) => {
    const include = [...document.querySelectorAll(places)].filter((node) => !node.closest(exclude));
    const found = await axe.run({ include, exclude }, { resultTypes: ['violations'], ...options });
    return found.violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => [`${id}: ${help}`, html]));
}"""

CONTRAST = "color-contrast"
"""The rule of axe that takes most of its time, and the only one that a theme decides."""


def inaccessible(page: Any, places: str, *, contrast: bool = True, others: bool = True) -> list[tuple[str, str]]:
    """What axe finds wrong in these places, and where, by its rule of contrast and by its `others`."""
    if not (contrast or others):
        return []
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE_SCRIPT)
    options = {"runOnly": [CONTRAST]} if contrast and not others else {"rules": {CONTRAST: {"enabled": contrast}}}
    return [(why, html[:200]) for why, html in page.evaluate(CHECKED, [places, FRONT_ENDS, options])]


class Pictures:
    """Looks at pages in every look: what they show must be readable. Takes pictures of what is not, and if they are
    wanted of all the rest, into `folder` as `<name>_<width>_<theme>_<number>.png`.
    """

    def __init__(self, folder: Path, wanted: bool) -> None:
        self.folder = folder
        self.wanted = wanted

    def shot(self, page: Any, name: str, **options: Any) -> None:
        """The page as it is now, if pictures are wanted: nothing is asked of it."""
        if self.wanted:
            page.screenshot(path=self.folder / name, **options)

    def of_notebook(
        self, opened: Page, name: str, height: int, check: Callable[[], None] = lambda: None, least: int = 8
    ) -> None:
        """The cells' outputs, on a page so high that all of them are in sight, with `least` texts or more. `check`
        is called in each look.
        """
        opened.page.add_style_tag(content="#jupyterlab-splash { display: none }")  # It fades over the new theme.
        widths = ALL_WIDTHS[1:] if self.wanted else WIDTHS
        for width, theme in product(widths, THEMES):
            opened.page.set_viewport_size({"width": width, "height": height})
            opened.set_theme(f"JupyterLab {theme.capitalize()}")
            opened.page.evaluate("() => document.querySelector('.jp-Cell').scrollIntoView()")
            opened.next_frame()
            check()
            outputs = ".jp-Cell-outputArea", ".jp-OutputArea-output > *"
            self._take(opened.page, f"{name}_{width}_{theme}", *outputs, width == widths[0], theme, least)

    def of_page(self, page: Any, name: str) -> None:
        """A page that shows one view and nothing else."""
        widths = ALL_WIDTHS if self.wanted else (*WIDTHS, PHONE)
        for width, theme in product(widths, THEMES):
            page.set_viewport_size({"width": width, "height": page.viewport_size["height"]})
            page.emulate_media(color_scheme=theme)
            dark = "document.querySelector('main').classList.contains('is-dark')"
            page.wait_for_function(f"() => {dark} === {str(theme == 'dark').lower()}")
            page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
            self._take(page, f"{name}_{width}_{theme}", "body", "html", width == widths[0], theme)

    def _take(
        self, page: Any, name: str, parts: str, checked: str, first_width: bool, theme: str, least: int = 8
    ) -> None:
        """Of what axe asks, contrast is the same at each width, and all else in each theme."""
        readable = False
        try:
            poll(lambda: unreadable(page, least) + unusable(page), [], SETTLE_SECONDS)
            faults = inaccessible(page, checked, contrast=first_width, others=theme == THEMES[0])
            assert not faults, faults
            readable = True
        finally:
            if self.wanted or not readable:
                shot = Image.open(io.BytesIO(page.screenshot()))
                for number, box in enumerate(page.evaluate(SHOWN, parts)):
                    shot.crop(box).save(self.folder / f"{name}_{number}.png")
