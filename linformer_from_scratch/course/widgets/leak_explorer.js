// A line of words, one of which is edited: which answers move? The numbers are in leak_explorer.py.

export default widget(({ model, stage }) => {
  const { tokens, ways } = model.get("facts"), { qkv, others, E, F } = arrays(model), [slots, n] = model.get("data").E.shape;
  const d = qkv.length / (3 * n), [q, ...before] = range(0, 2).map((role) => qkv.subarray(role * n * d, (role + 1) * n * d));
  const edited = () => model.get("token") - 1, pick = (i) => choose(model, "token", i + 1), words = () => tokens.slice(0, n);
  const lines = ways.map((way) => {
    const { element, small } = figure(stage, `${way[0].toUpperCase()}${way.slice(1)}`, "");
    element.style.flexBasis = "100%";
    return { small, text: sentence(element, { tokens: words, hover: pointing(), query: edited, pick }) };
  });

  /** Answers from m slots, or tokens: each of the n words attends to those that begin no later than it, (n, d). */
  const answers = (keys, values, m) => product(softmax(scoresOf(q, keys, d, Math.sqrt(d)).map((score, p) =>
    ((p % m) * n <= Math.floor(p / m) * m ? score : -Infinity)), m), values, m);
  const bothWays = ([k, v]) => [answers(k, v, n), answers(product(E, k, n), product(F, v, n), slots)];

  /** How far each answer moves, as a share of it, when a word gets the key and the value of another. */
  function moves(at) {
    const after = before.map((all, role) => all.map((x, p) => (Math.floor(p / d) === at ? others[role * n * d + p] : x)));
    const [old, now] = [before, after].map(bothWays), answer = (all, i) => all.subarray(i * d, (i + 1) * d);
    return keyed(ways, (_, way) => Float64Array.from({ length: n }, (_, i) => relativeError(answer(now[way], i), answer(old[way], i))));
  }

  return {
    controls: [slider(model, "token", { label: "Edit word", values: range(1, n), say: (place) => tokens[place - 1] })],
    hint: "click a late word. In the upper line the past stays unlit. Which words light up in the lower one, and why those?",
    draw() {
      const at = edited(), moved = moves(at), most = Math.max(...ways.flatMap((way) => [...moved[way]]));
      const earlier = ways.map((way) => `${moved[way].subarray(0, at).filter((far) => far > 1e-4).length} of the ${at}`);
      lines.forEach(({ small, text }, way) => {
        text.refresh();
        small.textContent = `${earlier[way]} earlier answers move`;
        [...text.element.children].forEach((word, i) => {
          const far = moved[ways[way]][i], lit = `var(--${i < at ? "key" : "query"}) ${fixed(45 * Math.sqrt(far / most), 0)}%`;
          word.textContent = i === at ? `${tokens[i]} → ${tokens[i + n]}` : tokens[i];
          word.style.background = i === at ? "" : `color-mix(in srgb, ${lit}, transparent)`;
          word.title = `its answer moves by ${percent(far)}`;
        });
      });
      const [exact, through] = earlier, change = `“${tokens[at]}” becomes “${tokens[at + n]}”.`;
      return { words: `${change} Before it ${exact} answers move in exact attention, and ${through} through slots.`, numbers: { moved } };
    },
  };
});
