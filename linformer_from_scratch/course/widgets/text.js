// The text that a widget shows: one of its own, or the reader's. As in reading.py and sentence.py.

/** The text that is shown, and the controls that choose it; one that cannot be read leaves the last in its place. */
function textOf(model, label = "Text") {
  const facts = () => model.get("facts"), { trait, also, most } = facts().reads, isKnown = () => Object.hasOwn(facts().tokens, model.get(trait));
  let last = Object.keys(facts().tokens)[0];
  const shown = () => {
    if (isKnown()) last = model.get(trait);
    return last;
  };
  const presets = model.get("choices")[trait], isOwn = (text) => !Object.hasOwn(presets, text);
  const texts = () => [...Object.keys(facts().tokens), ...(model.encoder?.own ? [model.encoder.own] : [])];
  const choices = () => Object.fromEntries(texts().map((one) => [one, isOwn(one) ? `your own: ${shorten(one, 60)}` : presets[one]]));
  const refusal = () => (isKnown() ? null : Object.hasOwn(facts().refused, model.get(trait)) ? facts().refused[model.get(trait)] : "The model reads your text …");
  return {
    shown,
    tokens: () => facts().tokens[shown()],
    isOwn: () => isOwn(shown()),
    controls: { text: menu(model, trait, { label, also, choices }), own: field(model, trait, { label: "Your own", also, hint: `any text; its first ${most} tokens are shown` }) },
    isUnknown: (token) => facts().unknown.includes(token),
    /** For `draw`: why the chosen text cannot be shown, or null, and words behind what is to be known of the reader's own. */
    said: (words, isItsOwn = isOwn(shown())) => ({ refusal: refusal(), words: (isItsOwn ? facts().remark : "") + words }),
  };
}

/** Queries, keys and values of all heads on the reader's text, (layers, heads, n, d) each. */
function ownHeads(model, text) {
  const all = numbers(model, text), size = all.length / 3;
  return [0, 1, 2].map((i) => all.subarray(i * size, (i + 1) * size));
}
