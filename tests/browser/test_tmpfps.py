import pytest
CODE = """
import numpy as np
from tinote.viz import Particles
x = np.random.default_rng(0).random((%d, 2), np.float32); v = (np.random.default_rng(1).random((%d, 2), np.float32)-.5)*.002
def step():
    np.add(x, v, out=x); np.mod(x, np.float32(1), out=x)
view = Particles(x, step, radius=%s); view.play(); view
"""
@pytest.mark.parametrize("n,r", [(1000,3),(10000,2),(100000,.7),(1000000,.7)])
def test_fps(notebook, n, r):
    page = notebook(CODE % (n, n, r)); page.run_all()
    page.wait("Number(document.querySelector('.tinote-view')?.dataset.painted ?? 0) > 5")
    a = page.page.evaluate("async () => { const v=document.querySelector('.tinote-view'); const a=+v.dataset.painted, t=performance.now(); await new Promise(r=>setTimeout(r,3000)); return (v.dataset.painted-a)/(performance.now()-t)*1000 }")
    s1=int(page.python("print(view.credits.sent)"))
    print("FPS", n, r, a, page.python("print(view.credits.window, view.credits.in_flight, view.steps)"), page.problems)
