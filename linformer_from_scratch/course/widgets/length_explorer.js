// Which outputs move when one token is edited, and what a shorter input uses of E. The numbers are in length_explorer.py.

const [CELL, NAMES] = [0.75, 9]; // em: the largest cell; what a map leaves for its names
const READABLE_CELL = 0.82; // em, from which on a map names its rows and columns

export default widget(({ model, stage }) => {
  const { names } = model.get("facts"), { qkv: all, edit, E, F } = arrays(model);
  const [, most, d] = model.get("data").qkv.shape, [slots, seqLen] = model.get("data").E.shape;
  const places = range(1, seqLen).map(String), moving = remember(), hover = pointing();
  const editedNow = () => Math.min(model.get("token"), model.get("n"));

  const parts = names.map((name) => {
    const column = html("div", { class: "lw-lane" });
    stage.append(column);
    const bars = chart(column, { title: name, height: 7, margin: { top: 8, right: 20, bottom: 12, left: 44 } });
    const map = heatMap(column, {
      title: "Every edit at once", note: "edited ↓, outputs →",
      abreast: 1, rows: () => places.slice(0, model.get("n")), hover,
      pick: (i) => choose(model, "token", i + 1), picks: "edits the row's token",
      read: (far, i, j) => `editing token ${i + 1} moves output ${j + 1} by ${fixed(far, 3)}`,
    });
    return { name, column, bars, map };
  });
  const last = html("div", { class: "lw-lane" });
  stage.append(last);
  const curve = chart(last, {
    title: "Standard deviation of Linformer's scores", note: "drag to set n", height: 9,
    margin: { top: 8, right: 20, bottom: 44, left: 44 },
  });
  const length = curve.handle(slider(model, "n", { label: "Tokens n", values: range(1, most) }));
  const token = parts[0].bars.handle(slider(model, "token", {
    label: "Edit token", values: () => range(1, model.get("n")), say: () => `${editedNow()} of ${model.get("n")}`,
  }), { ends: () => [0.5 / model.get("n"), 1 - 0.5 / model.get("n")] });
  const matrix = heatMap(last, {
    title: "E", abreast: 1, signed: true, rows: () => range(1, slots).map((slot) => `slot ${slot}`), columns: () => places,
    read: (weight, slot, token) => `slot ${slot + 1} ${token < model.get("n") ? "takes" : "would take"} `
      + `${signed(weight)} of token ${token + 1}`,
  });
  const cover = html("div", { class: "lw-unused" });
  matrix.canvas.after(cover);

  const first = (role, n) => all.subarray(role * most * d, (role * most + n) * d);
  const spreads = Float64Array.from({ length: seqLen }, (_, i) => spread(i + 1));

  /** Outputs of n tokens, (n, d). */
  const attend = {
    [names[0]]: (q, k, v, n) => {
      const scores = scoresOf(q, k, d, Math.sqrt(d)).map((score, p) => (p % n <= Math.floor(p / n) ? score : -Infinity));
      return product(softmax(scores, n), v, n);
    },
    [names[1]]: (q, k, v, n) => {
      const [slotKeys, slotValues] = [[E, k], [F, v]].map(([mixer, tokens]) => product(firstColumns(mixer, seqLen, n), tokens, n));
      return product(softmax(scoresOf(q, slotKeys, d, Math.sqrt(d)), slots), slotValues, slots);
    },
  };

  /** ‖change of each output‖, a row for each token that is edited, (n, n). */
  function moves(outputs, n) {
    const [q, k, v] = range(0, 2).map((role) => first(role, n)), before = outputs(q, k, v, n), far = new Float64Array(n * n);
    for (let token = 0; token < n; token++) {
      const edited = [k, v].map((tokens) => Float64Array.from(tokens, (x, p) => x + (Math.floor(p / d) === token ? edit[p % d] : 0)));
      const after = outputs(q, edited[0], edited[1], n).map((x, p) => x - before[p]);
      for (let i = 0; i < n; i++) far[token * n + i] = norm(after.subarray(i * d, (i + 1) * d));
    }
    return far;
  }

  /** Standard deviation of Linformer's scores of n tokens. */
  function spread(n) {
    const scores = scoresOf(first(0, n), product(firstColumns(E, seqLen, n), first(1, n), n), d, Math.sqrt(d));
    const mean = scores.reduce((a, b) => a + b) / scores.length;
    return Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
  }

  function bars(moved, edited, highest) {
    return (group, width, height) => {
      const n = moved.length, x = d3.scaleLinear([0, n], [0, width]), y = d3.scaleLinear([0, highest], [height, 0]);
      axes(group, x, y, { width, height, xTicks: [], yTicks: y.ticks(3) });
      moved.forEach((far, i) => { bar(group, x(i + 0.1), y(far), x(0.8), height - y(far), i < edited - 1 ? "key" : "query"); });
    };
  }

  function line(n) {
    return (group, width, height) => {
      const x = d3.scaleLinear([1, most], [0, width]), y = d3.scaleLinear([0, Math.max(...spreads)], [height, 0]);
      axes(group, x, y, { width, height, across: "tokens n", yTicks: y.ticks(3) });
      stroke(group, d3.line((_, i) => x(i + 1), y)(spreads), "query", 2.5);
      stroke(group, `M${x(seqLen)},0V${height}`, "key", 1.5, "4 3");
      write(group, `E ends at ${seqLen}`, x(seqLen) - 5, height - 16, "end");
      dot(group, x(n), y(spreads[n - 1]), 6, "query");
    };
  }

  return {
    controls: [length, token],
    hint: "edit a late token and look to its left: which outputs had no business moving? Then drag n to its end.",
    draw(theme) {
      const n = model.get("n"), edited = editedNow();
      if (n > seqLen) return { refusal: `ValueError: input has ${n} tokens; E and F were built for seq_len=${seqLen}` };
      const cell = cellIn(parts[0].column, seqLen);
      const far = moving([n], () => keyed(names, (name) => moves(attend[name], n)));
      const moved = keyed(names, (name) => far[name].subarray((edited - 1) * n, edited * n));
      const limit = Math.max(...names.map((name) => quantile(far[name], 0.95))); // both on one scale
      const highest = Math.max(...names.flatMap((name) => [...moved[name]]));
      const earlier = (name) => moved[name].subarray(0, edited - 1).filter((change) => change > 1e-6).length;
      for (const { name, bars: picture, map } of parts) {
        map.show(far[name], n, n, { limit, theme, cell, query: edited - 1 });
        closeUp(map);
        standAbove(picture, map);
        picture.show(bars(moved[name], edited, highest), {
          title: name, note: `${earlier(name)} of ${edited - 1} earlier move`,
        });
      }
      matrix.show(E, slots, seqLen, {
        limit: Math.max(...E.map(Math.abs)), theme, cell, high: cell * slots,
        title: `E: ${slots} slots × ${seqLen} positions, ${n} of them used`, note: "slots down, positions across",
      });
      closeUp(matrix);
      cover.style.left = `${(100 * n) / seqLen}%`;
      curve.show(line(n));
      const words =
        `Of ${edited - 1} earlier outputs, ${earlier(names[0])} move in causal attention, ${earlier(names[1])} in ` +
        `Linformer. n = ${n} of seq_len = ${seqLen}: scores have standard deviation ` +
        `${fixed(spreads[n - 1], 2)}; fewer columns mix less, and the softmax is more even.`;
      return { words, numbers: { moves: far, moved, E, spread: spreads[n - 1], spreads } };
    },
  };
});

/** Em of a cell where so many stand in a column's width, so that a token has the same place in all maps. */
function cellIn(column, count) {
  const style = getComputedStyle(column), room = column.clientWidth / parseFloat(style.fontSize), besidesNames = (room - NAMES) / count;
  return Math.min(CELL, +style.getPropertyValue("--side") / count, besidesNames >= READABLE_CELL ? besidesNames : room / count);
}

/** Numbers need less room than words. */
function closeUp({ canvas }) {
  const { style } = canvas.parentElement;
  if (style.marginLeft) Object.assign(style, { marginLeft: "3.2em", marginTop: "2em" });
}

/** Give a chart the margin and the width of a map that stands below it, so that their columns stand above each other. */
function standAbove({ element, margin }, { canvas }) {
  const { width, marginLeft } = canvas.parentElement.style, left = parseFloat(marginLeft) || 0;
  margin.left = Math.max(44, 16 * left);
  margin.right = 0;
  element.style.maxWidth = `${margin.left / 16 + parseFloat(width)}em`;
}
