// E and F learn in the page: steps of Adam that lower the squared error of a head's output. The twin is in PyTorch, in the tests.

/**
 * The error of a head's output through slots, and its gradients: O = softmax(q (E k)ᵀ / √d) F v, error ‖O − wanted‖² / ‖wanted‖².
 *
 * @returns {{error: number, dE: Float64Array, dF: Float64Array}} both gradients (slots, n)
 */
function slopes({ q, keys, v, wanted, d }, E, F) {
  const n = q.length / d, slots = E.length / n, root = Math.sqrt(d), size = norm(wanted) ** 2;
  const values = product(F, v, n), P = softmax(scoresOf(q, product(E, keys, n), d, root), slots);
  const off = product(P, values, slots).map((x, i) => x - wanted[i]);
  const dO = off.map((x) => (2 * x) / size), dP = scoresOf(dO, values, d, 1);
  const dS = throughSoftmax(P, dP, slots, root);
  const dF = scoresOf(product(transposed(P, slots), dO, n), v, d, 1);
  const dE = scoresOf(product(transposed(dS, slots), q, n), keys, d, 1);
  return { error: norm(off) / Math.sqrt(size), dE, dF };
}

/** Slopes of scores from those of their weights, P = softmax(scores / divisor): each weight by how much better it is than the row's mean. */
function throughSoftmax(P, dP, m, divisor) {
  const dS = new Float64Array(P.length);
  for (let start = 0; start < P.length; start += m) {
    let mean = 0;
    for (let j = start; j < start + m; j++) mean += P[j] * dP[j];
    for (let j = start; j < start + m; j++) dS[j] = (P[j] * (dP[j] - mean)) / divisor;
  }
  return dS;
}

/** Adam (Kingma and Ba 2015) with PyTorch's defaults, on numbers in place: step(gradient). */
function adam(numbers, rate) {
  const mean = new Float64Array(numbers.length), square = new Float64Array(numbers.length);
  let t = 0;
  return (gradient) => {
    t += 1;
    const first = 1 - 0.9 ** t, second = 1 - 0.999 ** t;
    for (let i = 0; i < numbers.length; i++) {
      mean[i] += 0.1 * (gradient[i] - mean[i]);
      square[i] += 0.001 * (gradient[i] ** 2 - square[i]);
      numbers[i] -= (rate * (mean[i] / first)) / (Math.sqrt(square[i] / second) + 1e-8);
    }
  };
}

/** E and F that learn on one head, { q, keys, v, wanted, d }: step() makes an update, and returns the error before it. */
function learner(head, E, F, rate) {
  const projections = [E, F].map((all) => Float64Array.from(all)), [moveE, moveF] = projections.map((all) => adam(all, rate));
  return {
    projections,
    updates: 0,
    step() {
      const { error, dE, dF } = slopes(head, ...projections);
      moveE(dE);
      moveF(dF);
      this.updates += 1;
      return error;
    },
  };
}
