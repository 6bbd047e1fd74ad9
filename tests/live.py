"""A widget in a page, moved by hand: controls by key and by pointer, words, numbers, picture."""

import base64
import time

import numpy as np

from linformer_from_scratch.course import widgets

LIMIT_S = 60  # for anything that is waited for: a loaded machine is slow, a broken one is caught all the same
SCRIPTS = {  # what a reader may type -> the words that the vocabulary cannot make
    "Crème brûlée, naïve façade, Ærø and 😀Ångström😀!": ["😀Ångström😀"],
    "Ελληνικά και Русский язык: всё ясно? 🎉🎉": ["🎉🎉"],
    "我喜欢机器学习，你呢？「東京で寿司を食べました。」": ["喜", "欢", "机", "器", "习", "你", "呢", "寿"],
    "مرحبا بالعالم، كيف حالك اليوم؟ 👩🏾‍🚀": ["؟", "👩🏾‍🚀"],
    "שלום עולם, नमस्ते दुनिया 😀 कैसे हो।": ["😀"],
}

# What is seen: the pixels of every canvas, the drawing of every chart, and which control is where.
PICTURE = """root => {
    const parts = [...root.querySelectorAll(".lw-stage canvas")].map((canvas) => canvas.toDataURL());
    parts.push(...[...root.querySelectorAll(".lw-stage svg")].map((svg) => svg.innerHTML));
    parts.push(...[...root.querySelectorAll(".lw-stage .lw-text")].map((text) => text.innerHTML));
    parts.push(...[...root.querySelectorAll(".lw-stage input")].map((handle) => handle.value));
    return parts.join();
}"""
# Name -> its numbers as the bytes of float64, in base64; an object's numbers under "name.key".
NUMBERS = """root => {
    const text = (numbers) => {
        const bytes = new Uint8Array(Float64Array.from(numbers).buffer);
        let characters = "";
        for (let i = 0; i < bytes.length; i += 8192)
            characters += String.fromCharCode(...bytes.subarray(i, i + 8192));
        return btoa(characters);
    };
    const seen = {};
    for (const [name, value] of Object.entries(root.numbers)) {
        const isList = ArrayBuffer.isView(value) || Array.isArray(value);
        const parts = isList || typeof value !== "object" ? { [name]: value }
            : Object.fromEntries(Object.entries(value).map(([key, inner]) => [`${name}.${key}`, inner]));
        for (const [part, numbers] of Object.entries(parts))
            seen[part] = text(ArrayBuffer.isView(numbers) ? numbers : [numbers].flat(Infinity));
    }
    return seen;
}"""
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# From the key or the click to the frame in which the widget has drawn, milliseconds.
STOPWATCH = """() => {
    window.moves = [];
    const root = document.querySelector(".lw");
    let last = null;
    const watch = (event) => {
        const before = root.pictures;
        const look = () => requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => {
                if (root.pictures > before) window.moves.push(performance.now() - event.timeStamp);
                else if (event === last) look();
            };
            channel.port2.postMessage(0);
        });
        last = event;
        look();
    };
    for (const kind of ["keydown", "change"]) document.addEventListener(kind, watch, true);
}"""


def wait_until(happens, what):
    """Return what `happens` returns as soon as that is true."""
    end = time.monotonic() + LIMIT_S
    while not (result := happens()):
        assert time.monotonic() < end, f"waited {LIMIT_S} s for: {what}"
        time.sleep(0.05)
    return result


class Live:
    """One widget in a page.

    Args:
        page: of a browser.
        root: locator of the widget's .lw element.
    """

    def __init__(self, page, root):
        self.page, self.root = page, root
        wait_until(lambda: self.root.count() and self.words(), "a widget")
        self.root.locator(".lw-more").evaluate("it => { it.open = true }")

    def words(self):
        """The line of numbers."""
        return self.root.locator(".lw-words").inner_text()

    def picture(self):
        """All that is drawn."""
        return self.root.evaluate(PICTURE)

    def numbers(self):
        """Name, or name.key -> the numbers that the browser computed, flat."""
        numbers = self.root.evaluate(NUMBERS)
        return {name: np.frombuffer(base64.b64decode(text)) for name, text in numbers.items()}

    def state(self):
        """Words and picture."""
        return self.words(), self.picture()

    def after(self, move):
        """Words and picture once what was waiting is drawn."""
        move()
        self.page.evaluate(TWO_FRAMES)
        return self.state()

    def controls(self):
        """Name in the page -> locator of every slider, menu and box, and of the chosen head."""
        controls = {}
        for control in self.root.locator(":is(input:not([type=text], [type=radio]), select):visible").all():
            controls[control.evaluate("it => it.labels[0].textContent")] = control
        if self.root.locator("[type=radio]").count():
            controls["Bars"] = self.root.locator("[type=radio]:checked")
        if self.root.locator(".lw-heads").count():
            controls["Layer and head"] = self.root.locator(".lw-heads button[aria-checked=true]")
        return controls

    def moves(self, name, control):
        """What can be done to a control: a way in words -> a function that does it."""
        key = self.page.keyboard.press
        kind = control.evaluate("it => it.type")
        if name == "Layer and head":
            cell = self.root.get_by_role("radio", name="Layer 4, head 9")

            def walk():
                control.focus()
                key("ArrowDown")
                key("ArrowRight")

            return {"keys": walk, "a click": cell.click}
        if kind == "range":

            def click(where):
                size = control.bounding_box()
                control.click(position={"x": where * size["width"], "y": size["height"] / 2})

            def press(*keys):
                control.focus()
                for one in keys:
                    key(one)

            return {
                "ArrowRight": lambda: press("ArrowRight"),
                "Home": lambda: press("Home"),
                "End, ArrowLeft": lambda: press("End", "ArrowLeft"),
                "a click": lambda: click(0.35),
            }
        if kind == "select-one":

            def choose(n):
                control.select_option(index=n)

            def press():
                control.focus()
                key("ArrowDown")

            options = control.locator("option").count()
            return {"ArrowDown": press} | {f"option {n}": lambda n=n: choose(n) for n in range(options)}
        if kind == "radio":
            return {one: lambda one=one: control.press(one) for one in ("ArrowDown", "ArrowUp")}
        return {"Space": lambda: (control.focus(), key("Space")), "a click": control.click}

    def as_python(self):
        """The same widget in Python, made from the text that "Copy state" gives."""
        self.root.get_by_role("button", name="Copy state").click()
        text = self.root.locator(".lw-bar [role=status]").inner_text()
        return eval(text, vars(widgets))

    def differences(self, widget, tolerance=1e-4):
        """Where the page's words and numbers are not those of a Python widget, in words."""
        said, wanted = self.words(), widget.caption()
        different = [f"{said!r} is not {wanted!r}"] * (said != wanted)
        for name, seen in self.numbers().items():
            attribute, _, key = name.partition(".")
            held = getattr(widget, attribute)
            held = np.asarray(held[key] if key else held, dtype=float).ravel()
            close = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
            if held.shape != seen.shape or not np.allclose(held, seen, **close):
                different.append(f"{name} has other numbers")
        return different
