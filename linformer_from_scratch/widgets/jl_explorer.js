// What a random projection does to lengths, beside the lemma of Johnson and Lindenstrauss. The numbers are in jl_explorer.py.

const SLOTS = range(1, 5).map((i) => 10 ** i); // on the right

export default widget(({ model, stage }) => {
  const { dims, lengths, numbers: amounts, bins, reach } = model.get("facts"), all = numbers(model, "distortions");
  const [, throws, , samples] = model.get("data").distortions.shape, last = dims.at(-1), numbersNow = {};
  const titles = ["Squared lengths: off by", "Share off by ε or more", "The k that the bound asks for"];
  const [lengthsKept, tails, slots] = titles.map((title) => {
    const one = chart(stage, { title, width: 34, height: 13.5, margin: { top: 20, right: 34, bottom: 44, left: 60 } });
    one.element.style.flexBasis = "16em";
    return one;
  });
  const [nameBars, nameTails, nameSlots] = [lengthsKept, tails, slots].map(namedPoints);
  const epsilons = range(1, 19).map((i) => i / 20);

  /** Let a drag on a chart set a trait: to the value whose place, from 0 to 1 across, lies nearest to the pointer. */
  const sets = (one, trait, values, place = (_, i) => i / (values.length - 1), folded = (across) => across) => dragged(one.svg, (x) => {
    const across = (x - one.margin.left) / (one.svg.viewBox.baseVal.width - one.margin.left - one.margin.right);
    choose(model, trait, values[nearest(values.map(place), folded(across))]);
  });
  sets(lengthsKept, "epsilon", epsilons, (epsilon) => epsilon / reach, (across) => Math.abs(2 * across - 1));
  sets(tails, "proj_dim", dims);
  sets(slots, "vectors", amounts);

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

  function histogram(counts, curve, epsilon) {
    return (group, width, height) => {
      const x = d3.scaleLinear([-reach, reach], [0, width]), y = d3.scaleLinear([0, Math.max(...counts, ...curve) * 1.05], [height, 0]);
      const ticks = { xTicks: width < 240 ? [-1, 0, 1] : [-1, -0.5, 0, 0.5, 1], xFormat: off }, step = width / bins;
      axes(group, x, y, { width, height, across: "‖Rx‖² / ‖x‖² − 1; drag to set ε", up: `of ${samples} vectors`, ...ticks });
      const ends = (i) => [i, i + 1].map((edge) => off(x.invert(edge * step))).join(" to ");
      counts.forEach((count, i) => {
        const outside = Math.abs(x.invert((i + 0.5) * step)) >= epsilon;
        group.append("rect").attr("x", i * step + 0.5).attr("y", y(count)).attr("width", Math.max(1, step - 1))
          .attr("height", height - y(count)).attr("fill", `var(--${outside ? "key" : "query"})`);
      });
      stroke(group, d3.line((_, i) => (i * step) / 4, y)(curve), "ink");
      for (const sign of [-1, 1]) stroke(group, `M${x(sign * epsilon)},0V${height}`, "ink", 1.5, "4 3");
      group.append("text").attr("x", x(epsilon) + 5).attr("y", 12).text(`ε = ${fixed(epsilon, 2)}`);
      nameBars(counts.map((count, i) => ({ x: (i + 0.5) * step, y: y(count), say: `off by ${ends(i)}: ${count} vectors` })));
    };
  }

  function measuredAndBound(shares, bounds, k, epsilon) {
    return (group, width, height) => {
      const x = d3.scaleLog([dims[0], last], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      axes(group, x, y, { width, height, across: "dimensions kept k; drag to set k", xTicks: dims, xFormat: String, yFormat: percent });
      stroke(group, `M${x(k)},0V${height}`, "ink");
      const useful = clamp((4 * Math.log(2)) / gap(epsilon), dims[0], last); // from here on the bound is below 100 %
      const places = range(0, 100).map((i) => useful * (last / useful) ** (i / 100));
      stroke(group, `M0,0H${x(useful)}`, "value", 2.5, "3 4");
      if (useful < last) stroke(group, d3.line(x, (at) => y(bound(at, epsilon)))(places), "value", 2.5);
      stroke(group, d3.line((_, i) => x(dims[i]), y)(shares), "key");
      shares.forEach((share, i) =>
        group.append("circle").attr("cx", x(dims[i])).attr("cy", y(share)).attr("r", dims[i] === k ? 6 : 4).attr("fill", "var(--key)"));
      nameTails(dims.flatMap((at, i) => [
        { x: x(at), y: y(shares[i]), say: `k = ${at}, measured: ${fixed(100 * shares[i], 1)}%` },
        { x: x(at), y: y(Math.min(1, bounds[i])), say: `k = ${at}, bound: ${inWords(bounds[i])}` },
      ]));
    };
  }

  function slotsAsked(asked, vectors, n) {
    return (group, width, height) => {
      const x = d3.scaleLog([amounts[0], amounts.at(-1)], [0, width]), y = d3.scaleLog([SLOTS[0], SLOTS.at(-1)], [height, 0]);
      const ticks = { xTicks: amounts.filter((_, i) => i % 2 === 0), yTicks: SLOTS, xFormat: thousands, yFormat: thousands };
      axes(group, x, y, { width, height, across: "vectors N; drag to set N", ...ticks });
      stroke(group, `M0,${y(n)}H${width}`, "grey", 2);
      group.append("text").attr("class", "lw-quiet").attr("x", 6).attr("y", y(n) - 6).text(`k = n = ${thousands(n)}`);
      stroke(group, d3.line((_, i) => x(amounts[i]), y)(asked), "value", 2.5);
      stroke(group, `M${x(vectors)},0V${height}`, "ink");
      group.append("circle").attr("cx", x(vectors)).attr("cy", y(asked[amounts.indexOf(vectors)])).attr("r", 6)
        .attr("fill", "var(--value)").attr("stroke", "var(--ink)");
      nameSlots(amounts.map((N, i) => ({ x: x(N), y: y(asked[i]), say: `${thousands(N)} vectors: k = ${thousands(asked[i])}` })));
    };
  }

  return {
    numbers: numbersNow,
    controls: [
      slider(model, "proj_dim", { label: "Keep k", values: dims }),
      slider(model, "n", { label: "Dimension n", values: lengths }),
      slider(model, "epsilon", { label: "ε", values: epsilons, say: (epsilon) => fixed(epsilon, 2) }),
      slider(model, "vectors", { label: "Vectors N", values: amounts }),
      slider(model, "seed", { label: "Dice", values: range(0, throws - 1) }),
    ],
    draw() {
      const [k, n, epsilon, vectors, seed] = ["proj_dim", "n", "epsilon", "vectors", "seed"].map(model.get);
      const first = (lengths.indexOf(n) * throws + seed) * dims.length;
      const thrown = dims.map((_, i) => all.subarray((first + i) * samples, (first + i + 1) * samples));
      const distortions = thrown[dims.indexOf(k)], counts = new Array(bins).fill(0), curve = expected(k);
      for (const x of distortions) counts[Math.min(bins - 1, Math.floor(((clamp(x, -reach, reach) + reach) / (2 * reach)) * bins))] += 1;
      const shares = thrown.map((some) => some.filter((x) => Math.abs(x) >= epsilon).length / samples);
      const bounds = dims.map((at) => bound(at, epsilon)), asked = amounts.map((amount) => needed(amount, epsilon));
      const outside = shares[dims.indexOf(k)], allowed = bound(k, epsilon), wanted = needed(vectors, epsilon);
      lengthsKept.show(histogram(counts, curve, epsilon), { note: "curve: means of k squares" });
      tails.show(measuredAndBound(shares, bounds, k, epsilon), { note: "orange: measured; green: bound" });
      slots.show(slotsAsked(asked, vectors, n), { note: "all N within ε, with a chance of ½" });
      Object.assign(numbersNow, { distortions, counts, expected: curve, outside, shares, bound: allowed, bounds, needed: wanted, asked });
      const mean = distortions.reduce((sum, x) => sum + x, 0) / samples;
      const spread = Math.sqrt(distortions.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (samples - 1));
      return (
        `k = ${k} of n = ${thousands(n)}: ${fixed(100 * outside, 1)}% are off by ${fixed(epsilon, 2)} or ` +
        `more; the lemma's bound for one vector is ${inWords(allowed)}. Spread ${fixed(spread, 3)}, ` +
        `√(2/k) = ${fixed(Math.sqrt(2 / k), 3)}. For ${thousands(vectors)} vectors at once the bound ` +
        `asks for k = ${thousands(wanted)}: ${wanted < n ? "fewer than" : "not fewer than"} the n = ${thousands(n)} there are.`
      );
    },
  };
});

/** A bound on a chance, in words. */
const inWords = (bound) => (bound <= 1 ? `${fixed(100 * bound, 2)}%` : `${percent(bound)}, which says nothing`);
