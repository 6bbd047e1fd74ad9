// E and F learn which sensors hear the same source; a sensor that is dragged hears another. The numbers are in sensor_explorer.py.

const [SLOW, PACE] = [50, 80]; // the first updates can be watched: ms from one to the next
const [NEAR, EDGE] = [26, 14]; // units: how near a hand takes a sensor; the margin

export default widget(({ model, stage, redraw }) => {
  const { lengths, dims, names: d, sources, wide, last, sharp, rate, small } = model.get("facts"), sent = arrays(model), ways = ["E and F", "one slot", "exact"];
  const [inputs, most] = model.get("data").heard.shape, letters = "ABCD", begun = remember(), now = () => begun([model.get("n"), model.get("proj_dim"), resets], begin);
  const far = ([x, y], [left, top]) => (wide * (x - left)) ** 2 + (y - top) ** 2; // squared
  const closest = (places, to) => places.reduce((best, place, i) => (far(place, to) < far(places[best], to) ? i : best), 0), heardBy = (place) => closest(sources, place);
  let resets = 0, due = 0, held = null, chosen = null, size = [1, 1]; // when the next update is; sensors in the hand, by the keys; of the plane

  const lost = html("p", { class: "lw-large" }), scene = html("div", { class: "lw-flowing" }, lost);
  stage.append(scene);
  const margin = { top: EDGE, right: EDGE, bottom: EDGE, left: EDGE }, plane = chart(scene, { title: "", width: 80, height: (width) => Math.min(width / wide - 0.6, 27.4), margin });
  const curve = chart(scene, {
    title: `Right answers in the last ${last} inputs`, height: 7, margin: { top: 10, right: 84, bottom: 44, left: 46 },
  });
  const learn = runner({
    label: "Learn", running: "Stop", can: () => true,
    forget() { resets += 1; },
    step() {
      if (performance.now() < due) return;
      const state = now();
      due = performance.now() + (state.updates < SLOW ? PACE : 0);
      for (const pupil of state.pupils) pupil.step();
      state.updates += 1;
      listen(state);
      redraw();
    },
  });
  scene.append(html("div", { class: "lw-teach" }, learn.element));
  plane.element.style.gridArea = "flow";
  for (const [name, value] of Object.entries({ tabindex: 0, role: "group", "data-lm-suppress-shortcuts": "true" })) plane.element.setAttribute(name, value);

  /** Sensors in their places, small random E and F of all slots and of one, and the first input. */
  function begin() {
    const n = model.get("n"), head = { d }, rows = dims.at(-1) * most;
    const start = (slots) => [0, rows].map((at) => firstColumns(sent.start.subarray(at, at + slots * most), most, n).map((x) => (small * x) / Math.sqrt(n)));
    const pupils = [model.get("proj_dim"), 1].map((slots) => learner(head, ...start(slots), rate)), places = range(0, n - 1).map((i) => [...sent.places.subarray(2 * i, 2 * i + 2)]);
    const state = { head, pupils, places, moved: new Set(), tried: keyed(ways, () => []), updates: 0 };
    listen(state);
    return state;
  }

  /** What the sensors hear and ask in the input that comes now, and how many of them then answer right. */
  function listen({ head, pupils, places, tried, updates }) {
    const n = places.length, at = updates % inputs, of = [2 * at, 2 * at + 1].map((row) => sent.sent.subarray(row * sources.length, (row + 1) * sources.length));
    const [q, keys, v, wanted] = range(1, 4).map(() => new Float64Array(n * d));
    places.forEach((place, i) => {
      const code = sent.heard[at * most + i], noise = code % 16, asked = code >> 4, kind = i % 2;
      q[i * d + of[0][asked]] = sharp;
      wanted[i * d + of[1][asked]] = 1;
      (kind ? v : keys)[i * d + (noise < d ? noise : of[kind][heardBy(place)])] = 1;
    });
    Object.assign(head, { q, keys, v, wanted });
    const right = (keys, v) => shareRight(product(softmax(scoresOf(q, keys, d, Math.sqrt(d)), keys.length / d), v, keys.length / d), wanted, d);
    const shares = [...pupils.map(({ projections: [E, F] }) => right(product(E, keys, n), product(F, v, n))), right(keys, v)];
    ways.forEach((way, i) => { tried[way][updates] = shares[i]; });
  }

  /** A sensor in another place hears the source that is nearest there; then Adam begins anew, from E and F as they are. */
  function move(i, place) {
    const state = now(), isOther = heardBy(place) !== heardBy(state.places[i]);
    state.places[i] = place;
    if (isOther) {
      state.moved.add(i);
      state.pupils = state.pupils.map(({ projections }) => learner(state.head, ...projections, rate));
      listen(state);
    }
    redraw();
  }

  const placeOf = (event) => placeIn(plane.svg, event).map((at, c) => clamp((at - EDGE) / size[c], 0, 1));
  const letGo = () => { held = chosen = null; redraw(); };
  plane.svg.addEventListener("pointerdown", (event) => {
    const place = placeOf(event), { places } = now(), nearest = closest(places, place);
    if (Math.hypot(...places[nearest].map((x, c) => (x - place[c]) * size[c])) > NEAR) return;
    held = nearest;
    plane.svg.setPointerCapture(event.pointerId);
    redraw();
  });
  plane.svg.addEventListener("pointermove", (event) => held !== null && move(held, placeOf(event)));
  for (const end of ["pointerup", "pointercancel"]) plane.svg.addEventListener(end, letGo);
  plane.element.addEventListener("blur", letGo);
  plane.element.addEventListener("keydown", (event) => {
    const { places } = now(), [down, right] = ARROWS[event.key] ?? [0, 0], from = places[chosen ?? 0], s = heardBy(from);
    if (event.key === "Enter" && chosen !== null) move(chosen, sources[(s + 1) % sources.length].map((x, c) => x + 0.3 * (from[c] - sources[s][c])));
    else if (down || right) {
      const along = ([x, y]) => right * wide * (x - from[0]) + down * (y - from[1]);
      const ahead = places.filter((place) => along(place) > 0.7 * Math.sqrt(far(place, from)));
      if (chosen === null) chosen = 0;
      else if (ahead.length) chosen = places.indexOf(ahead[closest(ahead, from)]);
      redraw();
    } else return;
    event.preventDefault();
  });

  const say = (i, { places }) => `sensor ${i + 1} hears the ${i % 2 ? "value" : "name"} of source ${letters[heardBy(places[i])]}: its column is in ${i % 2 ? "F" : "E"}`;

  /** Sensors in the colours of what is learned of them; the truth appears as the answers become right, or for a hand. */
  function scatter(state, parts, theme, share) {
    const colours = PALETTE[theme].lines.slice(0, 4).map((name) => { const { r, g, b } = d3.rgb(name); return [r, g, b]; }), marked = held ?? chosen;
    return (group, width, height) => {
      const r = clamp(0.26 * Math.sqrt((width * height) / state.places.length), 3.5, 11), put = ([x, y]) => [x * width, y * height], at = state.places.map(put);
      const [borders, sensors, names] = range(1, 3).map((i) => group.append("g").attr("opacity", i === 2 || marked !== null ? 1 : clamp(2 * share - 1, 0, 1)));
      const ringed = [];
      size = [width, height];
      sources.forEach((source, s) => {
        stroke(borders, `M${patch(s, sources, far).map(put).join("L")}Z`, "edge", 2);
        write(names, letters[s], ...put(source), "middle").attr("dominant-baseline", "central").style("font-size", "24px");
      });
      at.forEach(([x, y], i) => {
        const fill = painted(mixed(colours, parts.subarray(4 * i, 4 * i + 4))), shape = i % 2 ? bar(sensors, x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, fill) : dot(sensors, x, y, r, fill);
        shape.attr("stroke", "transparent").attr("stroke-width", 10).style("touch-action", "none").style("cursor", "grab");
        if (i === marked || state.moved.has(i)) ringed.push([i, shape]);
      });
      for (const [i, shape] of ringed) {
        shape.raise();
        dot(sensors, ...at[i], r + 5, "none").attr("stroke", "var(--ink)").attr("stroke-width", i === marked ? 3 : 1.5);
      }
      return at.map(([x, y], i) => ({ x, y, get say() { return say(i, state); } }));
    };
  }

  /** Running means of right answers, a line for each way. */
  const curves = (means, updates) => (group, width, height) => {
    const x = d3.scaleLinear([0, Math.max(100, updates)], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]), colours = ["query", "key", "value"];
    axes(group, x, y, { width, height, across: "updates", yTicks: [0, 0.25, 0.5, 0.75, 1], yFormat: percent });
    stroke(group, `M0,${y(1 / d)}H${width}`, "grey", 1.2, "2 4");
    ways.forEach((way, i) => {
      stroke(group, d3.line((_, t) => x(t), y)(means[way]), colours[i], i ? 2 : 3.5);
      dot(group, x(updates), y(means[way][updates]), i ? 3.5 : 5, colours[i]);
    });
    const ends = ways.map((name, i) => ({ name, y: y(means[name][updates]), colour: `var(--${colours[i]})`, bold: !i }));
    endNames(group, [...ends, { name: "a guess", y: y(1 / d), colour: "var(--grey)" }], { width, height });
  };

  return {
    controls: [slider(model, "n", { label: "Sensors n", values: lengths }), slider(model, "proj_dim", { label: "Slots k", values: dims }), learn],
    hint: "press Learn and watch the patches appear. Then drag a square into another patch and let E and F learn 300 updates more. What about a circle?",
    draw(theme) {
      const state = now(), { updates, tried, places } = state, [E, F] = state.pupils[0].projections, k = model.get("proj_dim"), n = places.length;
      const means = keyed(ways, (way) => tried[way].map((_, t) => mean(tried[way].slice(Math.max(0, t + 1 - last), t + 1))));
      const right = keyed(ways, (way) => means[way][updates]), parts = mix(E, F, places), [ours, one, exact] = Object.values(right);
      if (chosen >= n) chosen = null;
      lost.replaceChildren(html("b", {}, percent(ours)), ` right after ${updates} updates`);
      plane.show(scatter(state, parts, theme, ours), {
        title: `${n} sensors, ${sources.length} hidden sources`, note: "● hears a name, ■ a value; coloured as E and F tie them",
      });
      plane.element.setAttribute("aria-label", "Sensors: arrow keys walk from one to the next, Enter moves one into the next patch");
      if ((held ?? chosen) !== null) plane.tell(say(held ?? chosen, state));
      curve.show(curves(means, updates));
      const words =
        `${updates ? `After ${updates} updates` : "Before learning"}, ${n} sensors with ${k} slots answer ${percent(ours)} right; with one slot ` +
        `${percent(one)}, with exact attention ${percent(exact)}, by a guess ${fixed(100 / d, 1)}%.`;
      return { words, numbers: { E, F, mix: parts, curves: means, right } };
    },
  };
});

const mean = (some) => some.reduce((sum, x) => sum + x, 0) / some.length;

/** Share of rows of d numbers whose largest stands where it is wanted; of equal ones the first counts. */
function shareRight(output, wanted, d) {
  return mean(range(0, output.length / d - 1).map((i) => {
    const row = output.subarray(i * d, (i + 1) * d), most = Math.max(...row);
    return wanted[i * d + row.findIndex((x) => x >= most - 1e-9 * Math.abs(most))];
  }));
}

/** Corners of the part of the plane where a source is nearer than all others: the plane, cut once for each of them. */
function patch(s, sources, far) {
  const cut = (corners, other) => corners.flatMap((here, i) => {
    const next = corners[(i + 1) % corners.length], [a, b] = [here, next].map((at) => far(at, sources[s]) - far(at, other));
    return [...(a <= 0 ? [here] : []), ...(a <= 0 !== b <= 0 ? [here.map((x, c) => x + (a / (a - b)) * (next[c] - x))] : [])];
  });
  return sources.filter((_, other) => other !== s).reduce(cut, [[0, 0], [1, 0], [1, 1], [0, 1]]);
}

/** Parts of the colours of the plane's corners for each sensor, flat (n, 4): it is as the places that EᵀF ties it to. */
function mix(E, F, places) {
  const n = places.length, m = n / 2, k = E.length / n, [x, y] = [0, 1].map((c) => places.map((place) => 2 * place[c] - 1));
  const half = (rows, first) => Float64Array.from({ length: rows.length / 2 }, (_, p) => rows[Math.floor(p / m) * n + 2 * (p % m) + first]);
  const centred = (rows) => Float64Array.from([0, 1, 2].flatMap((c) => { const row = [...rows.subarray(c * m, (c + 1) * m)], middle = mean(row); return row.map((one) => one - middle); }));
  const plane = [...x, ...y, ...x.map((one, i) => one * y[i])], [names, values] = [half(E, 0), half(F, 1)];
  const tied = (from, first, to) => centred(product(scoresOf(centred(half(plane, first)), from, m, 1), to, k)), both = [tied(values, 1, names), tied(names, 0, values)];
  return Float64Array.from(places.flatMap((_, i) => {
    const at = [0, 1, 2].map((c) => both[i % 2][c * m + (i >> 1)]), scale = Math.sqrt(3) / Math.hypot(...at);
    const parts = [[-1, -1, 1], [1, -1, -1], [1, 1, 1], [-1, 1, -1]].map((corner) => Math.max(0, 1 + scale * corner.reduce((sum, sign, c) => sum + sign * at[c], 0)) ** 2);
    return parts.map((part) => part / parts.reduce((sum, one) => sum + one, 0));
  }));
}
