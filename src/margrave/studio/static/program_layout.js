// The layout of a program: positions and sizes of nodes, and widths of edges; pure functions.
// @ts-check

/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */
/** The class that dominates, and by how much (0: all alike, 1: it alone). @typedef {{side: number, strength: number}} Balance */
/** @typedef {import('./program_words.js').Route} Route */
/** @typedef {{node: ProgramNode, x: number, y: number, r: number, fill: string}} Placed */
/** @typedef {{path: string, width: number, stroke: string, from: ProgramNode, to: ProgramNode, edge: Program["edges"][number]}} Drawn */

const MARGIN = 34;
const WIDEST = 96;
const NARROWEST = 24;
const LEAST = 5;

/** A key of a node that does not change by tuning and growing. @param {ProgramNode} node */
export const keyOf = (node) => node.votes.join(' ');

/**
 * The dominant class when all classes have the same weight, as at the nodes of a program.
 * @param {number[]} sizes @param {number[]} totals @returns {Balance}
 */
function balanceOf(sizes, totals) {
  const fractions = sizes.map((n, side) => (totals[side] ? n / totals[side] : 0));
  const sum = fractions.reduce((all, fraction) => all + fraction, 0);
  const most = Math.max(...fractions);
  const even = 1 / fractions.length;
  const strength = sum > 0 ? (most / sum - even) / (1 - even) : 0;
  return { side: fractions.indexOf(most), strength };
}

/** The colour of a balance, from even to the class's own. @param {Balance} balance */
const fillOf = ({ side, strength }) =>
  `color-mix(in srgb, var(--side-${side % 6}) ${Math.round(strength * 100)}%, var(--side-even))`;

/** The colour of what a fraction of some errors passes, from none to all. @param {number} fraction */
const errorFill = (fraction) =>
  fraction > 0 ? `color-mix(in srgb, var(--bad) ${Math.round(25 + 75 * fraction)}%, var(--side-even))` : 'var(--side-even)';

/** Nodes by layer. @param {Program} program @returns {ProgramNode[][]} */
export function layersOf(program) {
  /** @type {ProgramNode[][]} */
  const layers = [];
  for (const node of program.nodes) (layers[node.layer] ??= []).push(node);
  return layers;
}

/**
 * Nodes of more than two classes, ordered in each layer by the mean place of their predecessors,
 * weighted by the flow, so that edges cross little.
 * @param {Program} program @returns {ProgramNode[][]}
 */
function ordered(program) {
  const layers = layersOf(program);
  /** @type {Map<string, number>} */
  const place = new Map();
  for (const layer of layers) {
    /** @type {Map<string, number>} */
    const wanted = new Map();
    for (const node of layer) {
      let sum = 0;
      let weight = 0;
      for (const edge of program.edges) {
        if (edge.end !== node.id) continue;
        const flow = 0.1 + edge.flow.reduce((all, n) => all + n, 0);
        const lean = program.classes.findIndex((label) => label === edge.predicted);
        const from = (place.get(edge.start) ?? 0) + (lean - (program.classes.length - 1) / 2) / 2;
        sum += flow * from;
        weight += flow;
      }
      wanted.set(node.id, weight ? sum / weight : 0);
    }
    layer.sort((a, b) => (wanted.get(a.id) ?? 0) - (wanted.get(b.id) ?? 0));
    layer.forEach((node, at) => place.set(node.id, at - (layer.length - 1) / 2));
  }
  return layers;
}

/** The distance of neighbours `reach` of which lie on each side. @param {number} width @param {number} reach */
const gapOf = (width, reach) =>
  Math.min(WIDEST, Math.max(NARROWEST, (width - 2 * MARGIN) / Math.max(1, 2 * reach)));

/**
 * Horizontal places: by votes for two classes, the positive to the right; else by order, each layer
 * as wide as it may be. `gap` is the smallest distance of neighbours.
 * @param {Program} program @param {number} width
 * @returns {{x: Map<string, number>, gap: number, width: number}}
 */
function across(program, width) {
  /** @type {{id: string, slot: number, reach: number}[]} */
  const slots = [];
  if (program.classes.length === 2) {
    const right = program.positive === program.classes[0] ? 0 : 1;
    const found = program.nodes.map(({ votes }) => (votes[right] - votes[1 - right]) / 2);
    const reach = Math.max(...found.map(Math.abs));
    program.nodes.forEach(({ id }, at) => slots.push({ id, slot: found[at], reach }));
  } else {
    for (const layer of ordered(program)) {
      const reach = (layer.length - 1) / 2;
      layer.forEach(({ id }, at) => slots.push({ id, slot: at - reach, reach }));
    }
  }
  const widest = Math.max(...slots.map(({ reach }) => reach));
  const gap = gapOf(width, widest);
  const needed = Math.max(width, 2 * MARGIN + 2 * widest * gap);
  const x = new Map(slots.map(({ id, slot, reach }) => [id, needed / 2 + slot * gapOf(needed, reach)]));
  return { x, gap, width: needed };
}

/**
 * The layout for a width; the returned width is larger if the drawing needs more. Sizes and colours are those of all
 * rows, or of the errors of a route.
 * @param {Program} program @param {number} width @param {Route | null} route
 * @returns {{placed: Placed[], drawn: Drawn[], width: number, height: number, gap: number}}
 */
export function layout(program, width, route) {
  const { x, gap, width: needed } = across(program, width);
  const rise = program.n_levels > 7 ? 58 : 72;
  const most = Math.min(21, 0.4 * gap);
  const totals = program.nodes[0].sizes;
  const errors = route ? Math.max(1, route.count(program.nodes[0].outcomes)) : 0;
  const placed = program.nodes.map((node) => {
    const reach = route ? route.count(node.outcomes) / errors : node.reach;
    return {
      node,
      x: x.get(node.id) ?? 0,
      y: MARGIN + node.layer * rise,
      r: node.kind === 'empty' ? LEAST : LEAST + (most - LEAST) * Math.sqrt(Math.min(1, reach)),
      fill: route ? errorFill(reach) : fillOf(balanceOf(node.sizes, totals)),
    };
  });
  const byId = new Map(placed.map((one) => [one.node.id, one]));
  const drawn = program.edges.flatMap((edge) => {
    const from = byId.get(edge.start);
    const to = byId.get(edge.end);
    if (!from || !to) return [];
    const fractions = edge.flow.map((n, side) => (totals[side] ? n / totals[side] : 0));
    const mean = fractions.reduce((all, fraction) => all + fraction, 0) / fractions.length;
    const part = route ? route.count(edge.outcomes) / errors : mean;
    const middle = (from.y + to.y) / 2;
    return {
      path: `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`,
      width: part > 0 ? 0.75 + 1.3 * most * part : 0,
      stroke: route ? errorFill(part) : fillOf(balanceOf(edge.flow, totals)),
      from: from.node,
      to: to.node,
      edge,
    };
  });
  const last = Math.max(...program.nodes.map((node) => node.layer));
  return { placed, drawn, width: needed, height: 2 * MARGIN + last * rise + 14, gap };
}

/**
 * The node that an arrow key leads to: the neighbour within a layer, or along the widest edge to
 * another layer.
 * @param {Placed[]} placed @param {Drawn[]} drawn @param {Placed} at @param {string} key
 * @returns {Placed | null}
 */
export function neighbour(placed, drawn, at, key) {
  if (key === 'Home') return placed[0];
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const side = key === 'ArrowLeft' ? -1 : 1;
    const beside = placed.filter((one) => one.y === at.y && side * (one.x - at.x) > 0);
    return beside.sort((a, b) => side * (a.x - b.x))[0] ?? null;
  }
  if (key !== 'ArrowDown' && key !== 'ArrowUp') return null;
  const down = key === 'ArrowDown';
  const edges = drawn.filter((edge) => (down ? edge.from : edge.to) === at.node);
  const widest = edges.sort((a, b) => b.width - a.width)[0];
  const goal = widest && (down ? widest.to : widest.from);
  return placed.find((one) => one.node === goal) ?? null;
}
