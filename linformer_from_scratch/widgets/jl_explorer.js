// What a random projection does to lengths, beside the lemma of Johnson and Lindenstrauss. The numbers are in jl_explorer.py.

const [LEAST, MOST] = [10, 1e5]; // slots on the right

export default widget(({ model, stage }) => {
  const { dims, lengths, numbers: amounts, bins, reach } = model.get("facts"), all = numbers(model, "distortions");
  const [, throws, , samples] = model.get("data").distortions.shape;
  const made = (title) => {
    const one = chart(stage, { title, width: 34, height: 20, margin: { top: 20, right: 34, bottom: 44, left: 60 } });
    one.element.style.flexBasis = "20em";
    return one;
  };
  const [lengthsKept, tails, slots] = [made(`Squared lengths of ${samples} vectors: off by`), made("Share off by ε or more"), made("Slots the bound asks for")];
  const [nameBars, nameTails, nameSlots] = [lengthsKept, tails, slots].map(namedPoints);
  const numbersNow = {};

  const epsilons = range(1, 19).map((i) => i / 20), last = dims[dims.length - 1];

  /** Let a drag on a chart set a trait: to the value whose place, from 0 to 1 across, lies nearest to the pointer. */
  const sets = (one, trait, values, place = (_, i) => i / (values.length - 1), folded = (across) => across) => dragged(one.svg, (x) => {
    const across = (x - one.margin.left) / (one.svg.viewBox.baseVal.width - one.margin.left - one.margin.right);
    choose(model, trait, values[nearest(values.map(place), folded(across))]);
  });
  sets(lengthsKept, "epsilon", epsilons, (epsilon) => epsilon / reach, (across) => Math.abs(2 * across - 1));
  sets(tails, "proj_dim", dims);
  sets(slots, "vectors", amounts);

  const bound = (k, epsilon) => 2 * Math.exp((-(epsilon ** 2 - epsilon ** 3) * k) / 4);
  const needed = (vectors, epsilon) => Math.ceil((4 * Math.log((2 * vectors) / 0.5)) / (epsilon ** 2 - epsilon ** 3));

  /** Vectors on average in a bin around places from −reach to reach, by the density of a mean of k squares. */
  function expected(k) {
    const half = k / 2, logGamma = range(1, half - 1).reduce((sum, i) => sum + Math.log(i), 0);
    return range(0, 4 * bins).map((i) => {
      const square = Math.max(0, 1 - reach + (i * reach) / (2 * bins));
      return ((samples * 2 * reach) / bins) * Math.exp((half - 1) * Math.log(square) + half * (Math.log(half) - square) - logGamma);
    });
  }

  const off = (share) => (stops(share, 0) ? "0" : `${share > 0 ? "+" : "−"}${percent(Math.abs(share))}`);

  function histogram(counts, curve, epsilon) {
    return (group, width, height) => {
      const x = d3.scaleLinear([-reach, reach], [0, width]), y = d3.scaleLinear([0, Math.max(...counts, ...curve) * 1.05], [height, 0]);
      axes(group, x, y, { width, height, across: "‖Rx‖² / ‖x‖² − 1; drag to set ε", xTicks: range(-2, 2).map((i) => i / 2), xFormat: off, up: "vectors" });
      const step = width / bins;
      counts.forEach((count, i) => {
        const outside = Math.abs(i + 0.5 - bins / 2) * 2 * reach / bins >= epsilon;
        group.append("rect").attr("x", i * step + 0.5).attr("y", y(count)).attr("width", Math.max(1, step - 1)).attr("height", height - y(count))
          .attr("fill", `var(--${outside ? "key" : "query"})`);
      });
      group.append("path").attr("d", d3.line((_, i) => (i * step) / 4, y)(curve)).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
      for (const sign of [-1, 1])
        group.append("path").attr("d", `M${x(sign * epsilon)},0V${height}`).attr("stroke", "var(--ink)").attr("stroke-width", 1.5).attr("stroke-dasharray", "4 3");
      group.append("text").attr("x", x(epsilon)).attr("y", -6).attr("text-anchor", "middle").text(`ε = ${fixed(epsilon, 2)}`);
      const ends = (i) => [i, i + 1].map((edge) => off(x.invert(edge * step))).join(" to ");
      nameBars(counts.map((count, i) => ({ x: (i + 0.5) * step, y: y(count), say: `off by ${ends(i)}: ${count} vectors` })));
    };
  }

  function measuredAndBound(shares, bounds, k) {
    return (group, width, height) => {
      const x = d3.scaleLog([dims[0], last], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      axes(group, x, y, { width, height, across: "dimensions kept k; drag to set k", xTicks: dims, xFormat: String, yFormat: percent });
      group.append("path").attr("d", `M${x(k)},0V${height}`).attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
      const epsilon = model.get("epsilon");
      const useful = clamp((4 * Math.log(2)) / (epsilon ** 2 - epsilon ** 3), dims[0], last); // from here on it is below 100 %
      const places = range(0, 100).map((i) => useful * (last / useful) ** (i / 100));
      group.append("path").attr("d", `M0,0H${x(useful)}`).attr("stroke", "var(--value)").attr("stroke-width", 2.5).attr("stroke-dasharray", "3 4");
      if (useful < last)
        group.append("path").attr("d", d3.line((at) => x(at), (at) => y(bound(at, epsilon)))(places))
          .attr("fill", "none").attr("stroke", "var(--value)").attr("stroke-width", 2.5);
      group.append("path").attr("d", d3.line((_, i) => x(dims[i]), y)(shares)).attr("fill", "none").attr("stroke", "var(--key)").attr("stroke-width", 1.5);
      shares.forEach((share, i) => group.append("circle").attr("cx", x(dims[i])).attr("cy", y(share)).attr("r", dims[i] === k ? 6 : 4).attr("fill", "var(--key)"));
      nameTails(dims.flatMap((at, i) => [
        { x: x(at), y: y(shares[i]), say: `k = ${at}, measured: ${fixed(100 * shares[i], 1)}%` },
        { x: x(at), y: y(Math.min(1, bounds[i])), say: `k = ${at}, bound: ${inWords(bounds[i])}` },
      ]));
    };
  }

  function slotsAsked(asked, vectors, n) {
    return (group, width, height) => {
      const x = d3.scaleLog([1, amounts[amounts.length - 1]], [0, width]), y = d3.scaleLog([LEAST, MOST], [height, 0]);
      const yTicks = range(Math.log10(LEAST), Math.log10(MOST)).map((i) => 10 ** i), xTicks = amounts.filter((_, i) => i % 2 === 0);
      axes(group, x, y, { width, height, across: "vectors N; drag to set N", xTicks, yTicks, xFormat: thousands, yFormat: thousands });
      group.append("path").attr("d", `M0,${y(n)}H${width}`).attr("stroke", "var(--grey)").attr("stroke-width", 2);
      group.append("text").attr("x", 6).attr("y", y(n) - 6).style("fill", "var(--grey)").text(`k = n = ${thousands(n)}`);
      group.append("path").attr("d", d3.line((_, i) => x(amounts[i]), y)(asked)).attr("fill", "none").attr("stroke", "var(--value)").attr("stroke-width", 2.5);
      const at = amounts.indexOf(vectors);
      group.append("path").attr("d", `M${x(vectors)},0V${height}`).attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
      group.append("circle").attr("cx", x(vectors)).attr("cy", y(asked[at])).attr("r", 6).attr("fill", "var(--value)").attr("stroke", "var(--ink)");
      nameSlots(amounts.map((amount, i) => ({ x: x(amount), y: y(asked[i]), say: `${thousands(amount)} vectors: k = ${thousands(asked[i])}` })));
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
      const distortions = thrown[dims.indexOf(k)], counts = new Array(bins).fill(0);
      for (const off of distortions) counts[Math.min(bins - 1, Math.floor(((clamp(off, -reach, reach) + reach) / (2 * reach)) * bins))] += 1;
      const shares = thrown.map((some) => some.filter((off) => Math.abs(off) >= epsilon).length / samples);
      const bounds = dims.map((at) => bound(at, epsilon)), asked = amounts.map((amount) => needed(amount, epsilon)), curve = expected(k);
      const outside = shares[dims.indexOf(k)], allowed = bound(k, epsilon), wanted = needed(vectors, epsilon);
      lengthsKept.show(histogram(counts, curve, epsilon), { note: "orange: outside ε; curve: means of k squares" });
      tails.show(measuredAndBound(shares, bounds, k), { note: "orange: measured; green: the lemma's bound" });
      slots.show(slotsAsked(asked, vectors, n), { note: "for N vectors within ε, with a chance of ½ at least" });
      Object.assign(numbersNow, { distortions, counts, expected: curve, outside, shares, bound: allowed, bounds, needed: wanted, asked });
      const mean = distortions.reduce((sum, off) => sum + off, 0) / samples;
      const spread = Math.sqrt(distortions.reduce((sum, off) => sum + (off - mean) ** 2, 0) / (samples - 1));
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
