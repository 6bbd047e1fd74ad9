// What widgets share that show the error of a head's output against the slots k.

const DECADES = [0.001, 0.01, 0.1, 1, 10], PERCENTS = DECADES.flatMap((error) => [error, 3 * error]);

/** Axes on which all these errors have room, both logarithmic; returns their scales, of k and of the error. */
function errorAxes(group, dims, errors, { width, height }) {
  const ends = [Math.min(...errors), Math.max(...errors)];
  const x = d3.scalePoint(dims, [0, width]), y = d3.scaleLog(ends, [height, 0]).nice(), [low, high] = y.domain();
  const ticks = PERCENTS.filter((error) => error >= low && error <= high), isDense = 18 * ticks.length > height;
  axes(group, x, y, {
    width, height, across: "slots k", xTicks: dims,
    yTicks: ticks.filter((error) => !isDense || DECADES.includes(error)), yFormat: (error) => `${+(100 * error).toPrecision(1)}%`,
  });
  group.append("line").attr("x2", width).attr("y1", y(1)).attr("y2", y(1)).style("stroke", "var(--grey)"); // answering zero
  return { x, y };
}

/** Names right of their curves: [{ name, y, colour, bold }]. */
function endNames(group, names, { width, height }) {
  const heights = apart(names.map(({ y }) => y), 17, 0, height);
  names.forEach(({ name, colour, bold }, i) => {
    write(group, name, width + 10, heights[i]).attr("dominant-baseline", "central").style("fill", colour).style("font-weight", bold ? "bold" : null);
  });
}
