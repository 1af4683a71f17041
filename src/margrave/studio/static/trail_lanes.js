// The trail as lanes: the column of each step, and the lines between steps. No page.
// @ts-check

/**
 * A step's place in the drawing: its lane, and the lines in its row. Each line goes from lane to lane,
 * over the row's upper half, lower half, or all of it.
 * @typedef {{lane: number, lines: {from: number, to: number, part: "upper" | "lower" | "all"}[]}} Place
 */

/**
 * A row for each step in order; the first child continues in its parent's lane, others branch off into
 * the lowest free lane.
 * @param {{number: number, parent: number | null}[]} steps
 * @returns {{places: Place[], width: number}}
 */
export function lanes(steps) {
  const rowOf = new Map(steps.map((step, row) => [step.number, row]));
  /** The chain of each row, and each chain from the row of its parent to its last row. */
  /** @type {number[]} */
  const chainOf = [];
  /** @type {{start: number, end: number, lane: number}[]} */
  const chains = [];
  const continued = new Set();
  steps.forEach((step, row) => {
    const above = step.parent === null ? undefined : rowOf.get(step.parent);
    if (above !== undefined && !continued.has(above)) {
      continued.add(above);
      chainOf[row] = chainOf[above];
      chains[chainOf[row]].end = row;
    } else {
      chainOf[row] = chains.length;
      chains.push({ start: above ?? row, end: row, lane: 0 });
    }
  });
  chains.forEach((chain, at) => {
    const taken = new Set(
      chains
        .slice(0, at)
        .filter((other) => other.start <= chain.end && other.end >= chain.start)
        .map(({ lane }) => lane),
    );
    while (taken.has(chain.lane)) chain.lane += 1;
  });
  /** @type {Place[]} */
  const places = steps.map((_, row) => ({ lane: chains[chainOf[row]].lane, lines: [] }));
  steps.forEach((step, row) => {
    const above = step.parent === null ? undefined : rowOf.get(step.parent);
    if (above === undefined) return;
    const { lane } = places[row];
    places[above].lines.push({ from: places[above].lane, to: lane, part: 'lower' });
    for (let between = above + 1; between < row; between += 1)
      places[between].lines.push({ from: lane, to: lane, part: 'all' });
    places[row].lines.push({ from: lane, to: lane, part: 'upper' });
  });
  return { places, width: 1 + Math.max(0, ...places.map(({ lane }) => lane)) };
}
