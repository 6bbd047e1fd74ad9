// The sentence that a widget shows: tokens, maps and query, and the controls that choose them. As in sentence.py.

/** What is shown of a model's state; a sentence that cannot be read leaves the last in its place. */
function sentenceOf(model) {
  const decoded = remember(), facts = () => model.get("facts"), isKnown = () => model.get("sentence") in facts().tokens;
  let last = Object.keys(facts().tokens)[0];
  const shown = () => {
    if (isKnown()) last = model.get("sentence");
    return last;
  };
  const tokens = () => facts().tokens[shown()];
  const query = () => {
    const chosen = model.get("query");
    return chosen !== null && chosen < tokens().length ? chosen : facts().openings[shown()];
  };
  const pick = (i) => choose(model, "query", i);
  /** Weights of all heads, (layers, heads, n, n), rows sum to one. */
  const maps = () => decoded(shown(), () => softmax(Float64Array.from(numbers(model, shown()), Math.log), tokens().length));
  const named = (one) => model.get("choices").sentence[one] ?? "your own sentence";
  const choices = () => Object.fromEntries(Object.keys(facts().tokens).map((one) => [one, named(one)]));
  const also = { query: null }; // each sentence has its own word to look at first
  return {
    tokens, query, pick, maps,
    controls: [
      menu(model, "sentence", { label: "Sentence", wide: true, also, choices }),
      field(model, "sentence", { label: "Your own", also }),
      slider(model, "query", { label: "Query token", value: query, values: () => tokens().map((_, i) => i), say: (i) => tokens()[i] }),
    ],
    /** Why the chosen sentence cannot be shown, or null. */
    refusal: () => (isKnown() ? null : facts().refused[model.get("sentence")] ?? "The model reads your sentence …"),
    /** The map of a head, (n, n); layer and head are counted from 1. */
    map(layer, head) {
      const size = tokens().length ** 2, at = 12 * (layer - 1) + head - 1;
      return maps().subarray(at * size, (at + 1) * size);
    },
    /** Whether a token stands for a word. */
    isWord: (i) => !facts().rests.includes(tokens()[i]),
  };
}

/** Place of the largest number, the first of equals. */
const largest = (values) => values.indexOf(Math.max(...values));
