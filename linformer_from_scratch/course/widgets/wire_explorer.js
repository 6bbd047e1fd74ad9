// What a rank sends, and what it holds. The formulas are those of distributed/wire.py: wire_explorer.py sends them as tables.

export default widget(({ model, stage }) => {
  const { formulas, lengths, ticks, units, bytes, lines } = model.get("facts");
  const methods = Object.keys(lines), [ring, ulysses, linformer] = methods, others = [ring, ulysses];
  const curves = growth(stage, model, { lengths, values: lengths }), bars = shares(stage, { count: 5 });
  const inBytes = (value) => quantity(value, units);

  return {
    controls: [
      slider(model, "ranks", { label: "Ranks P", values: powersOfTwo(1, 8) }),
      slider(model, "n", { label: "Tokens n", values: lengths }),
    ],
    hint: "double the ranks, then double n. Which of the three lines doesn't care?",
    more: [
      slider(model, "proj_dim", { label: "Slots k", values: powersOfTwo(6, 10) }),
      slider(model, "d_model", { label: "d_model", values: powersOfTwo(8, 12) }),
      tick(model, "shared", { label: "E = F" }),
    ],
    draw(theme) {
      const [ranks, n, k, d, shared] = ["ranks", "n", "proj_dim", "d_model", "shared"].map(model.get);
      const inN = keyed(methods, (name) => inPowersOfN(formulas[shared ? "shared" : "apart"][name], [d, 1, k, 1, bytes, ranks]));
      const drawn = keyed(methods, (name) => lengths.map((at) => atN(inN[name], at)));
      const sent = keyed(methods, (name) => atN(inN[name], n));
      const above = keyed(others, (name) => Math.round((n * sent[linformer]) / sent[name]));
      const exchanges = { [ring]: ranks - 1, [ulysses]: 4, [linformer]: 1 };
      const kinds = { [ring]: ranks === 2 ? "pass" : "passes", [ulysses]: "all-to-alls", [linformer]: "all-reduce" };
      const tokens = n / ranks, tokenBytes = tokens * d * bytes, matrixBytes = (shared ? 1 : 2) * k * tokens * bytes;
      const matrices = shared ? "columns of E = F" : "columns of E and F";
      const colour = (name) => PALETTE[theme].lines[lines[name][0]];
      const whole = (name, shade, value, words) => ({ name, colour: shade, words, parts: [{ name: "", value, strong: true, words: `${name}: ${words}` }] });
      curves.show({
        title: "What a rank sends in one layer, forward",
        note: "dashed: above this n it sends more than Linformer",
        curves: methods.map((name) => ({ name, colour: colour(name), width: lines[name][1], values: drawn[name], now: sent[name], points: [] })),
        ticks, say: inBytes, marks: others.map((name) => [`${name} ${thousands(above[name])}`, above[name]]),
      });
      bars.show({
        title: `Bytes of a rank at n = ${thousands(n)}`,
        note: `Linformer is not exact, the others are; Ulysses needs ${ranks} heads or more`,
        rows: [
          ...methods.map((name) => whole(`sends: ${name}`, colour(name), sent[name], `${inBytes(sent[name])} in ${exchanges[name]} ${kinds[name]}`)),
          whole(`holds: ${thousands(tokens)} tokens`, "var(--grey)", tokenBytes, inBytes(tokenBytes)),
          whole(`holds: ${matrices}`, "var(--grey)", matrixBytes, inBytes(matrixBytes)),
        ],
      });
      const compared = others.map((name) => `${name} ${inBytes(sent[name])}, ${times(sent[name] / sent[linformer])}`), least = Math.max(...Object.values(above));
      const words =
        `${thousands(n)} tokens on ${ranks} ranks, a layer's forward pass: Linformer sends ${inBytes(sent[linformer])} whatever n; ${compared.join("; ")}. ` +
        `Linformer sends less than both above n = ${thousands(least)}, ${n > least ? "as here" : "but not here"}. ` +
        `A rank's ${matrices}, ${inBytes(matrixBytes)}, do grow with n.`;
      return { words, numbers: { sent, above, exchanges, tokens, token_bytes: tokenBytes, matrix_bytes: matrixBytes, curves: drawn } };
    },
  };
});

/** A ratio of powers of two in words. */
function times(ratio) {
  if (ratio === 1) return "just as much";
  return ratio > 1 ? `${thousands(Math.round(ratio))} times as much` : `1/${thousands(Math.round(1 / ratio))} as much`;
}
