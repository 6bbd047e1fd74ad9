// Two models of bytes learn in a worker (pupils.js) while one watches, and write on. The numbers are in training_explorer.py.

const LOOKS = { Linformer: "key", Transformer: "query" }, AHEAD = 100; // updates that the chart begins with

export default widget(({ model, stage, redraw }) => {
  const { program, special, guess, count, sees, every, slots, there, yet, ...plan } = model.get("facts"), { train, unseen, ...weights } = arrays(model);
  const names = Object.keys(there), begun = remember(), now = () => begun([resets], begin);
  let resets = 0;

  const curves = chart(stage, {
    title: "Loss of the next byte, of texts that neither has seen", note: "solid: the whole text is in sight; dashed: only its start, as for a writer",
    width: 50, height: (width) => (width < 30 ? 15 : 17), margin: { top: 12, right: 136, bottom: 44, left: 30 },
  });
  const learn = runner({
    label: "Learn", running: "Pause", can: () => true, step: () => due() || ask("learn", every),
    forget() { dismiss(); resets += 1; redraw(); },
  });
  const input = html("input", { type: "text", input: () => choose(model, "begun", input.value) });
  const button = html("button", { type: "button", click() { now().isWriting = true; redraw(); } }, "Write");
  const lines = keyed(Object.keys(LOOKS), () => html("p", { class: "lw-text" })), beginning = row("Begin with", input, button);
  stage.append(html("div", { class: "lw-writing" }, learn.element, beginning, ...Object.values(lines)));
  const sight = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || learn.stop());
  sight.observe(stage);

  const task = () => `${now().updates} ${model.get("begun")}`, due = () => now().isWriting && now().task !== task();

  /** Nothing is learned, and there is no worker yet; task: what was written last, or is being written. */
  const begin = () => ({ updates: 0, there, yet, isWriting: false, isBusy: false, written: keyed(names, () => ""), task: "", worker: null });

  /** Two models in a worker, with the same weights; the Transformer has neither E nor F. */
  function hire(state) {
    const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" })), worker = new Worker(address);
    const packed = model.get("data"), own = { Transformer: (name) => !/\.[EF]\./.test(name), Linformer: () => true };
    const given = (name) => keyed(Object.keys(weights).filter(own[name]), (one) => ({ data: weights[one], shape: packed[one].shape }));
    const long = plan.n + 1, held = range(0, unseen.length / long - 1).map((i) => Array.from(unseen.subarray(i * long, (i + 1) * long)));
    worker.onmessage = ({ data: { lesson, result } }) => {
      URL.revokeObjectURL(address);
      if (state === now()) answered(state, lesson, result);
    };
    worker.postMessage({ lesson: "begin", given: { ...plan, ids: train, unseen: held, weights: names.map(given) } });
    return worker;
  }
  const dismiss = () => now().worker?.terminate();

  /** One thing at a time; what is due when it is done, `draw` asks for. */
  function ask(lesson, given) {
    const state = now();
    if (state.isBusy) return;
    state.worker ??= hire(state);
    state.isBusy = true;
    stage.ariaBusy = "true";
    state.worker.postMessage({ lesson, given });
  }
  function answered(state, lesson, result) {
    const more = (kind) => keyed(names, (name, i) => [...state[kind][name], result[kind][i]]);
    const text = (ids) => new TextDecoder().decode(Uint8Array.from(ids.filter((id) => id >= special), (id) => id - special));
    state.isBusy = false;
    if (lesson === "learn") Object.assign(state, { updates: result.updates, there: more("there"), yet: more("yet") });
    else state.written = keyed(names, (_, i) => text(result[i]).replace(/\n/g, "↵").replace(/\p{C}|�/gu, "·"));
    redraw();
  }

  /** Four losses by updates. */
  const draw = ({ updates, there, yet }) => (group, width, height) => {
    const most = Math.max(8, ...names.flatMap((name) => yet[name])), points = [];
    const x = d3.scaleLinear([0, Math.max(AHEAD, updates)], [0, width]), y = d3.scaleLinear([0, most], [height, 0]);
    axes(group, x, y, { width, height, across: "updates" });
    stroke(group, `M0,${y(guess)}H${width}`, "grey", 1.2, "2 4");
    const ends = [{ name: "a blind guess", y: y(guess), colour: "var(--grey)" }];
    for (const [name, colour] of Object.entries(LOOKS))
      for (const [when, losses] of Object.entries({ "sees all": there[name], "start only": yet[name] })) {
        stroke(group, d3.line((_, i) => x(every * i), y)(losses), colour, 3, when === "sees all" ? null : "7 4");
        dot(group, x(updates), y(losses.at(-1)), 5, colour);
        points.push({ x: x(updates), y: y(losses.at(-1)), say: `${name}, ${when}: ${fixed(losses.at(-1), 2)} after ${updates} updates` });
        if (name === "Linformer" || when === "sees all") ends.push({ name: name === "Linformer" ? `${name}, ${when}` : name, y: y(losses.at(-1)), colour: `var(--${colour})`, bold: true });
      }
    endNames(group, ends, { width, height });
    return points;
  };

  return {
    controls: [{ ...learn, stop() { learn.stop(); dismiss(); sight.disconnect(); } }],
    hint: "press Learn and watch the orange curves part. Then press Write: which of the two would you ask for a sentence?",
    draw() {
      const state = now(), { updates, there, yet, written } = state, text = model.get("begun");
      if (due() && !state.isBusy) {
        state.task = task();
        ask("write", { text: Array.from(new TextEncoder().encode(text || " "), (byte) => byte + special), count, sees });
      }
      stage.ariaBusy = String(state.isBusy); // after a reset too
      input.value = text;
      curves.show(draw(state));
      for (const [name, line] of Object.entries(lines)) {
        line.replaceChildren(html("b", { style: `color: var(--${LOOKS[name]})` }, state.isWriting ? `${name}, after ${state.task.split(" ")[0]} updates` : name), text, html("mark", {}, written[name]));
      }
      const [[a, b], [c, d]] = [there, yet].map((losses) => ["Linformer", "Transformer"].map((name) => fixed(losses[name].at(-1), 2)));
      const words = `${updates ? `After ${updates} updates` : "Before learning"}: where the text is there, the Linformer's loss is ${a} and the Transformer's ` +
        `${b}; where it isn't yet, ${c} and ${d}. A blind guess has ${fixed(guess, 2)}.`;
      return { words, numbers: { there, yet } };
    },
  };
});
