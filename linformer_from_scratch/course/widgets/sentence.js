// The sentence that a widget shows: tokens, maps and query, and the controls that choose them. As in sentence.py.

/** What is shown of a model's state. */
function sentenceOf(model) {
  const decoded = remember(), facts = () => model.get("facts");
  const { shown, tokens, controls, said } = textOf(model, "Sentence");
  const opening = () => facts().openings.map((word) => tokens().indexOf(word)).find((i) => i >= 0) ?? Math.floor(tokens().length / 2);
  const query = () => {
    const chosen = model.get("query");
    return chosen !== null && chosen < tokens().length ? chosen : opening();
  };
  const pick = (i) => choose(model, "query", i);
  /** Weights of all heads, (layers, heads, n, n), rows sum to one. */
  const maps = () => decoded(shown(), () => softmax(Float64Array.from(numbers(model, shown()), Math.log), tokens().length));
  return {
    tokens, query, pick, maps, said,
    controls: {
      ...controls,
      query: slider(model, "query", { label: "Query token", value: query, values: () => tokens().map((_, i) => i), say: (i) => tokens()[i] }),
    },
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
