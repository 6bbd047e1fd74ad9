// What a random projection does to lengths, beside the lemma of Johnson and Lindenstrauss. The numbers are in jl_explorer.py.

const SLOTS = range(1, 5).map((i) => 10 ** i); // on the right
const AT_ONCE = 6; // vectors that land between two pictures

export default widget(({ model, stage, redraw }) => {
  const { dims, lengths, numbers: amounts, bins, reach } = model.get("facts"), all = numbers(model, "distortions");
  const [, throws, , samples] = model.get("data").distortions.shape, last = dims.at(-1);
  const isWide = () => stage.clientWidth > 46 * emOf(stage);
  const place = (title, wide, margin) => {
    const one = chart(stage, { title, width: wide, height: () => (isWide() ? 19 : 12.5), margin: { top: 24, right: 34, bottom: 44, left: 60, ...margin } });
    one.element.style.flex = `${wide} 1 ${wide / 2.4}em`;
    return one;
  };
  const lengthsKept = place("How far off each length is", 40, { left: 44, right: 20 });
  const tails = place("Share off by ε or more", 24), slots = place("The k that the bound asks for", 24);
  const margins = () => Object.assign(slots.margin, Object.assign(tails.margin, isWide() ? { left: 60, right: 34 } : { left: 44, right: 14 }));
  const epsilons = range(1, 19).map((i) => i / 20), onAxis = (epsilon) => (1 + epsilon / reach) / 2;
  const handles = [
    tails.handle(slider(model, "proj_dim", { label: "Keep k", values: dims })),
    lengthsKept.handle(
      slider(model, "epsilon", { label: "ε", values: epsilons, say: (epsilon) => fixed(epsilon, 2) }),
      { ends: () => [onAxis(epsilons[0]), onAxis(epsilons.at(-1))] },
    ),
    slots.handle(slider(model, "vectors", { label: "Vectors N", values: amounts })),
  ];

  // A throw: the vectors land one after the other, each as a brick on its pile.
  let landed = samples, falling = 0;
  function fall() {
    landed = matchMedia("(prefers-reduced-motion: reduce)").matches ? samples : Math.min(samples, landed + AT_ONCE);
    falling = landed < samples ? requestAnimationFrame(fall) : 0;
    redraw();
  }
  const stop = () => { cancelAnimationFrame(falling); landed = samples; };
  function click() {
    stop();
    landed = 0;
    choose(model, "seed", (model.get("seed") + 1) % throws);
    fall();
  }
  const button = html("button", { type: "button", click }, `Throw ${samples} vectors`);
  const dice = { element: html("div", { class: "lw-control" }, button), refresh() {}, stop };

  const gap = (epsilon) => epsilon ** 2 - epsilon ** 3;
  const bound = (k, epsilon) => 2 * Math.exp((-gap(epsilon) * k) / 4);
  const needed = (vectors, epsilon) => Math.ceil((4 * Math.log((2 * vectors) / 0.5)) / gap(epsilon));

  /** Vectors on average in a bin around places from −reach to reach, by the density of a mean of k squares. */
  function expected(k) {
    const half = k / 2, logGamma = range(1, half - 1).reduce((sum, i) => sum + Math.log(i), 0);
    return range(0, 4 * bins).map((i) => {
      const square = Math.max(0, 1 - reach + (i * reach) / (2 * bins));
      const logarithm = (half - 1) * Math.log(square) + half * (Math.log(half) - square) - logGamma;
      return ((samples * 2 * reach) / bins) * Math.exp(logarithm);
    });
  }

  const off = (share) => (nearlyEqual(share, 0) ? "0" : `${share > 0 ? "+" : "−"}${percent(Math.abs(share))}`);
  const binOf = (x) => Math.min(bins - 1, Math.floor(((clamp(x, -reach, reach) + reach) / (2 * reach)) * bins));

  function histogram(distortions, counts, curve, epsilon) {
    return (group, width, height) => {
      const x = d3.scaleLinear([-reach, reach], [0, width]), y = d3.scaleLinear([0, Math.max(...counts, ...curve) * 1.05], [height, 0]);
      const ticks = { xTicks: width < 240 ? [-1, 0, 1] : [-1, -0.5, 0, 0.5, 1], xFormat: off }, step = width / bins, high = y(0) - y(1);
      axes(group, x, y, { width, height, across: "‖Rx‖² / ‖x‖² − 1; drag to set ε", up: `a brick: one of ${samples} vectors`, ...ticks });
      const ends = (i) => [i, i + 1].map((edge) => off(x.invert(edge * step))).join(" to ");
      const piles = new Array(bins).fill(0), bricks = { query: "", key: "" };
      for (const distortion of distortions.subarray(0, landed)) {
        const bin = binOf(distortion), isOff = Math.abs(x.invert((bin + 0.5) * step)) >= epsilon;
        piles[bin] += 1;
        bricks[isOff ? "key" : "query"] += `M${bin * step + 0.5},${y(piles[bin]) + 0.12 * high}h${step - 1}v${0.88 * high}h${1 - step}Z`;
      }
      for (const [colour, d] of Object.entries(bricks)) group.append("path").attr("d", d).attr("fill", `var(--${colour})`);
      stroke(group, d3.line((_, i) => (i * step) / 4, y)(curve), "ink");
      for (const sign of [-1, 1]) stroke(group, `M${x(sign * epsilon)},0V${height}`, "ink", 1.5, "4 3");
      const share = distortions.filter((one) => Math.abs(one) >= epsilon).length / samples;
      const beside = Math.min(x(epsilon) + 5, width - 108);
      write(group, `ε = ${fixed(epsilon, 2)}`, beside, 12);
      write(group, `${fixed(100 * share, 1)}% are outside`, beside, 30).style("fill", "var(--key)");
      return counts.map((count, i) => ({ x: (i + 0.5) * step, y: y(count), say: `off by ${ends(i)}: ${count} vectors` }));
    };
  }

  function measuredAndBound(shares, bounds, k, epsilon) {
    return (group, width, height) => {
      const x = d3.scaleLog([dims[0], last], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      axes(group, x, y, { width, height, across: `${isWide() ? "dimensions kept k; " : ""}drag to set k`, xTicks: width < 200 ? dims.filter((_, i) => i % 2 === 0) : dims, xFormat: String, yFormat: percent });
      stroke(group, `M${x(k)},0V${height}`, "ink");
      write(group, `k = ${k}`, x(k), -8, "middle");
      const useful = clamp((4 * Math.log(2)) / gap(epsilon), dims[0], last); // from here on the bound is below 100 %
      const places = range(0, 100).map((i) => useful * (last / useful) ** (i / 100));
      stroke(group, `M0,0H${x(useful)}`, "value", 2.5, "3 4");
      if (useful < last) stroke(group, d3.line(x, (at) => y(bound(at, epsilon)))(places), "value", 2.5);
      stroke(group, d3.line((_, i) => x(dims[i]), y)(shares), "key");
      shares.forEach((share, i) => dot(group, x(dims[i]), y(share), dims[i] === k ? 6 : 4, "key"));
      return dims.flatMap((at, i) => [
        { x: x(at), y: y(shares[i]), say: `k = ${at}, measured: ${fixed(100 * shares[i], 1)}%` },
        { x: x(at), y: y(Math.min(1, bounds[i])), say: `k = ${at}, bound: ${inWords(bounds[i])}` },
      ]);
    };
  }

  function slotsAsked(asked, vectors, n) {
    return (group, width, height) => {
      const x = d3.scaleLog([amounts[0], amounts.at(-1)], [0, width]), y = d3.scaleLog([SLOTS[0], SLOTS.at(-1)], [height, 0]);
      const say = isWide() ? thousands : d3.format("~s"), aside = Math.min(66, width / 2);
      const ticks = { xTicks: amounts.filter((_, i) => i % (width < 200 ? 3 : 2) === 0), yTicks: SLOTS, xFormat: say, yFormat: say };
      axes(group, x, y, { width, height, across: `${isWide() ? "vectors N; " : ""}drag to set N`, ...ticks });
      stroke(group, `M0,${y(n)}H${width}`, "grey", 2);
      write(group, `k = n = ${thousands(n)}`, 6, y(n) - 6).attr("class", "lw-quiet");
      stroke(group, d3.line((_, i) => x(amounts[i]), y)(asked), "value", 2.5);
      stroke(group, `M${x(vectors)},0V${height}`, "ink");
      const wanted = asked[amounts.indexOf(vectors)];
      write(group, `N = ${thousands(vectors)}: k = ${thousands(wanted)}`, clamp(x(vectors), aside, width - aside), -8, "middle");
      dot(group, x(vectors), y(wanted), 6, "value").attr("stroke", "var(--ink)");
      return amounts.map((N, i) => ({ x: x(N), y: y(asked[i]), say: `${thousands(N)} vectors: k = ${thousands(asked[i])}` }));
    };
  }

  return {
    controls: [dice, ...handles],
    hint: "throw a few times, then drag k to the right: how fast does the pile get narrow? Now look at what the bound says.",
    more: [slider(model, "n", { label: "Dimension n", values: lengths })],
    draw() {
      const [k, n, epsilon, vectors, seed] = ["proj_dim", "n", "epsilon", "vectors", "seed"].map(model.get);
      const first = (lengths.indexOf(n) * throws + seed) * dims.length;
      const thrown = dims.map((_, i) => all.subarray((first + i) * samples, (first + i + 1) * samples));
      const distortions = thrown[dims.indexOf(k)], counts = new Array(bins).fill(0), curve = expected(k);
      for (const x of distortions) counts[binOf(x)] += 1;
      const shares = thrown.map((some) => some.filter((x) => Math.abs(x) >= epsilon).length / samples);
      const bounds = dims.map((at) => bound(at, epsilon)), asked = amounts.map((amount) => needed(amount, epsilon));
      const outside = shares[dims.indexOf(k)], allowed = bound(k, epsilon), wanted = needed(vectors, epsilon);
      const mean = distortions.reduce((sum, x) => sum + x, 0) / samples;
      const spread = Math.sqrt(distortions.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (samples - 1));
      const note = `spread ${fixed(spread, 3)}, √(2/k) = ${fixed(Math.sqrt(2 / k), 3)}; curve: means of k squares`;
      margins();
      lengthsKept.show(histogram(distortions, counts, curve, epsilon), { note });
      tails.show(measuredAndBound(shares, bounds, k, epsilon), { note: "orange: measured; green: bound" });
      slots.show(slotsAsked(asked, vectors, n), { note: "all N within ε, with a chance of ½" });
      const words =
        `With k = ${k} of n = ${thousands(n)}, ${fixed(100 * outside, 1)}% of the vectors are off by ${fixed(epsilon, 2)} or more; ` +
        `the lemma allows ${inWords(allowed)}. For ${thousands(vectors)} vectors at once it asks for k = ${thousands(wanted)}, ` +
        `${wanted < n ? "fewer than" : "not fewer than"} the n = ${thousands(n)} there are.`;
      return { words, numbers: { distortions, counts, expected: curve, outside, shares, bound: allowed, bounds, needed: wanted, asked } };
    },
  };
});

/** A bound on a chance, in words. */
const inWords = (bound) => (bound <= 1 ? `${fixed(100 * bound, 2)}%` : `${percent(bound)}, which says nothing`);
