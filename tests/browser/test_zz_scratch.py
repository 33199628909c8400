from tests.browser.test_explorer import GRAVITY, PAINTED, BIG, rows, lit
def test_shots(notebook):
    for w, h in ((1280, 1000), (800, 1100)):
        page = notebook(GRAVITY, width=w, height=h)
        page.run_all()
        page.wait(f"{PAINTED} >= 1")
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            page.set_theme(theme)
            page.page.locator(".tinote-explorer").scroll_into_view_if_needed()
            page.page.evaluate("() => document.querySelector('.tinote-explorer').scrollIntoView({block: 'end'})")
            page.page.wait_for_timeout(200)
            page.page.screenshot(path=f"/tmp/expl/lab_{w}_{theme[-5:].strip()}.png")
            print(page.page.evaluate("() => document.querySelector('.tinote-explorer').getBoundingClientRect().width"))
        page.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        page.page.wait_for_timeout(400)
        page.page.evaluate("() => document.querySelector('.tinote-explorer').scrollIntoView({block: 'end'})")
        page.page.wait_for_timeout(200)
        page.page.screenshot(path=f"/tmp/expl/lab_{w}_wide.png")
        if w == 1280:
            page.page.get_by_role("listbox", name="Stages").focus()
            page.page.keyboard.press("End")
            page.page.wait_for_timeout(3000)
            print(page.page.evaluate("() => [document.querySelector('.right .lines').textContent.slice(0, 300), document.querySelector('.right .pane-head').textContent.slice(-100)]"))
            page.page.screenshot(path=f"/tmp/expl/lab_asm.png")
            print(page.problems, page.python("print(explorer)"))
