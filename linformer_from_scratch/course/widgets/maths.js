// The light arithmetic of the widgets, row by row in flat arrays; each function has its twin in Python.

/** a bᵀ / divisor: (n, d), (m, d) -> (n, m). */
const scoresOf = (a, b, d, divisor) => product(a, transposed(b, d), d).map((sum) => sum / divisor);

/** a b: (n, m), (m, p) -> (n, p), in blocks of two rows and four columns, whose sums stay in the processor. */
function product(a, b, m) {
  const n = a.length / m, p = b.length / m, result = new Float64Array(n * p);
  if (n < 2 || p < 4) {
    for (let i = 0; i < n; i++)
      for (let c = 0; c < m; c++)
        for (let j = 0, factor = a[i * m + c]; j < p; j++) result[i * p + j] += factor * b[c * p + j];
    return result;
  }
  for (let row = 0; row < n; row += 2)
    for (let column = 0; column < p; column += 4) {
      const i = Math.min(row, n - 2), j = Math.min(column, p - 4); // what is left over is in two blocks
      let s = 0, t = 0, u = 0, v = 0, w = 0, x = 0, y = 0, z = 0;
      for (let at = i * m, q = j; q < b.length; at++, q += p) {
        const upper = a[at], lower = a[at + m], b0 = b[q], b1 = b[q + 1], b2 = b[q + 2], b3 = b[q + 3];
        s += upper * b0; t += upper * b1; u += upper * b2; v += upper * b3;
        w += lower * b0; x += lower * b1; y += lower * b2; z += lower * b3;
      }
      const first = i * p + j, second = first + p;
      result[first] = s; result[first + 1] = t; result[first + 2] = u; result[first + 3] = v;
      result[second] = w; result[second + 1] = x; result[second + 2] = y; result[second + 3] = z;
    }
  return result;
}

/** aᵀ: (n, m) -> (m, n). */
function transposed(a, m) {
  const n = a.length / m, result = new Float64Array(a.length);
  for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) result[j * n + i] = a[i * m + j];
  return result;
}

/** The first `count` columns of a: (n, m) -> (n, count). */
function firstColumns(a, m, count) {
  return Float64Array.from({ length: (a.length / m) * count }, (_, p) => a[Math.floor(p / count) * m + (p % count)]);
}

/** softmax(scores / temperature) over rows of m. */
function softmax(scores, m, temperature = 1) {
  const weights = new Float64Array(scores.length);
  for (let start = 0; start < scores.length; start += m) {
    let largest = -Infinity, sum = 0;
    for (let j = start; j < start + m; j++) largest = Math.max(largest, scores[j]);
    for (let j = start; j < start + m; j++) sum += weights[j] = Math.exp((scores[j] - largest) / temperature);
    for (let j = start; j < start + m; j++) weights[j] /= sum;
  }
  return weights;
}

/** softmax(q kᵀ / √d) of each head, (n, n): q, k (heads, n, d). */
function mapsOf(q, k, n, d) {
  return Array.from({ length: q.length / (n * d) }, (_, head) => {
    const [queries, keys] = [q, k].map((all) => all.subarray(head * n * d, (head + 1) * n * d));
    return softmax(scoresOf(queries, keys, d, Math.sqrt(d)), n);
  });
}

/**
 * U, σ and Vᵀ of a square map, largest σ first, by the eigenvectors of PᵀP.
 * A σ below about 1e-8 of the largest is noise; U has a column of zeros there.
 */
function decompose(P, n) {
  const gram = product(transposed(P, n), P, n);
  const rows = Array.from({ length: n }, (_, i) => Array.from(gram.subarray(i * n, (i + 1) * n)));
  const eigen = new linear.EigenvalueDecomposition(new linear.Matrix(rows), { assumeSymmetric: true });
  const sigma = new Float64Array(n), vt = new Float64Array(n * n);
  for (let c = 0; c < n; c++) {
    const from = n - 1 - c; // eigenvalues come smallest first
    sigma[c] = Math.sqrt(Math.max(0, eigen.realEigenvalues[from]));
    for (let j = 0; j < n; j++) vt[c * n + j] = eigen.eigenvectorMatrix.get(j, from);
  }
  const u = product(P, transposed(vt, n), n); // U diag(σ)
  for (let c = 0; c < n; c++)
    for (let i = 0, scale = sigma[c] > 1e-8 * sigma[0] ? 1 / sigma[c] : 0; i < n; i++) u[i * n + c] *= scale;
  return { u, sigma, vt };
}

/** The first `rank` terms of Σ σ_i u_i v_iᵀ, (n, n). */
function rebuild({ u, sigma, vt }, rank) {
  const n = sigma.length, map = new Float64Array(n * n);
  for (let i = 0; i < n; i++)
    for (let c = 0; c < rank; c++)
      for (let j = 0, factor = u[i * n + c] * sigma[c]; j < n; j++) map[i * n + j] += factor * vt[c * n + j];
  return map;
}

/** Frobenius norm. */
const norm = (a) => Math.sqrt(a.reduce((sum, x) => sum + x * x, 0));

/** ‖a − b‖ / ‖b‖, so that an answer of zeros has error 1. */
const relativeError = (a, b) => norm(a.map((x, i) => x - b[i])) / norm(b);

/** Entropy in bits. */
const entropy = (weights) => -weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log2(w) : 0), 0);

/** What a share q of the numbers lie below, interpolated as torch.quantile does. */
function quantile(numbers, q) {
  const sorted = Float64Array.from(numbers).sort(), at = q * (sorted.length - 1), below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

/**
 * Linformer's E for a text of n tokens, as `windows` makes it: row i is the mean of window i, the first and the last token
 * stand alone; a text of at most k tokens has a slot for each. (k, n); rows of slots without a token are zero.
 */
function windows(n, k) {
  const slots = Array.from({ length: n }, (_, token) => (n > k ? Math.floor(((token - 1) * (k - 2)) / (n - 2)) + 1 : token));
  const sizes = new Float32Array(k), E = new Float32Array(k * n);
  for (const slot of slots) sizes[slot]++;
  slots.forEach((slot, token) => { E[slot * n + token] = 1 / sizes[slot]; });
  return E;
}
