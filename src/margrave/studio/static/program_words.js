// The limit of an edited cell, as a preference and as a sentence; nodes, routes of errors and edits in words.
// @ts-check

import { count, labelText, nameClass, percent, plural, predictedText, quoted, rowTotals } from './kit.js';

/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */
/** Some errors, and how many of them `outcomes` have. @typedef {{name: string, count: (outcomes: number[][]) => number}} Route */

/** The word for a cell in a preference. @param {Matrix} matrix @param {number} row @param {number} column */
function word(matrix, row, column) {
  const { classes, positive } = matrix;
  if (row === column) return `correct(${quoted(classes[row])})`;
  if (classes.length === 2 && positive !== null) return classes[row] === positive ? 'fn' : 'fp';
  return `errors(${quoted(classes[row])} -> ${quoted(classes[column])})`;
}

/**
 * The limit of a number in a cell: an upper limit on errors, a lower limit on right predictions.
 * @param {Matrix} matrix @param {number} row @param {number} column @param {string} typed
 * @returns {{want: string, sentence: string} | {error: string} | null} null without an edit
 */
export function wanted(matrix, row, column, typed) {
  const text = typed.trim().replace(/\s*%$/, '%');
  if (text === '' || text === String(matrix.counts[row][column])) return null;
  const total = rowTotals(matrix)[row];
  const [from, to] = [nameClass(matrix.classes[row]), nameClass(matrix.classes[column])];
  const isPercent = text.endsWith('%');
  const value = Number(isPercent ? text.slice(0, -1) : text);
  if (!/^(\d+|\d*\.\d+%|\d+%)$/.test(text) || !Number.isFinite(value)) {
    return { error: `${from} predicted ${to} needs a whole number such as 3, or a percentage such as 2%.` };
  }
  if (isPercent ? value > 100 : value > total) {
    return { error: `${text} is too large: this node gets ${plural(total, 'row')} of ${from}.` };
  }
  const right = row === column;
  const amount = isPercent ? `${text} of the` : `${count(value)} of`;
  return {
    want: `${word(matrix, row, column)} ${right ? '>=' : '<='} ${text}`,
    sentence: `${right ? 'at least' : 'at most'} ${amount} ${count(total)} ${from} predicted ${to}`,
  };
}

/** @type {Record<ProgramNode["kind"], string>} */
export const KINDS = {
  learner: 'learner',
  constant: 'one class only',
  frozen: 'frozen',
  empty: 'empty',
  leaf: 'end',
};

/** "2 nonspam, 1 spam"; "no votes yet" at the root. @param {Program} program @param {{votes: number[]}} node */
function votesText(program, node) {
  const votes = program.classes
    .map((label, side) => ({ label, n: node.votes[side] }))
    .filter(({ n }) => n > 0)
    .map(({ label, n }) => `${count(n)} ${nameClass(label)}`);
  return votes.length ? votes.join(', ') : 'no votes yet';
}

/** "267 nonspam, 214 spam". @param {Program} program @param {number[]} sizes */
export const sizesText = (program, sizes) =>
  program.classes.map((label, side) => `${count(sizes[side])} ${nameClass(label)}`).join(', ');

/**
 * The errors whose routes can be shown, by their true class; with a positive class they have names.
 * @param {{classes: Label[], positive: Label | null}} program @returns {Route[]}
 */
export function routesOf({ classes, positive }) {
  const named = classes.length === 2 && positive !== null;
  const routes = classes.map((label, row) => ({
    name: !named ? `errors on ${nameClass(label)}` : label === positive ? 'false negatives' : 'false positives',
    count: (/** @type {number[][]} */ outcomes) => outcomes[row].reduce((sum, n, column) => (column === row ? sum : sum + n), 0),
  }));
  return named && classes[0] === positive ? routes.reverse() : routes; // false positives come first
}

/** "31 of 81 false positives". @param {Program} program @param {Route} route @param {number[][]} outcomes */
export const routeText = (program, route, outcomes) =>
  `${count(route.count(outcomes))} of ${count(route.count(program.nodes[0].outcomes))} ${route.name}`;

/** "false positives 81 → 74, false negatives 88 → 90", or the cells of several classes that changed. @param {Matrix} before @param {Matrix} after */
function errorsText(before, after) {
  if (before.classes.length === 2 && before.positive !== null) {
    const routes = routesOf(before);
    return routes.map(({ name, count: of }) => `${name} ${count(of(errorCells(before)))} → ${count(of(errorCells(after)))}`).join(', ');
  }
  const cells = before.classes.flatMap((label, row) =>
    before.classes.flatMap((predicted, column) => {
      const [was, is] = [before.counts[row][column], after.counts[row][column]];
      return row === column || was === is ? [] : [`${nameClass(label)} ${predictedText(predicted)} ${count(was)} → ${count(is)}`];
    }),
  );
  return cells.length ? cells.join(', ') : 'no other errors';
}

/** The counts without the rejected. @param {Matrix} matrix */
const errorCells = (matrix) => matrix.counts.map((row) => row.slice(0, matrix.classes.length));

/** "The root", "Layer 2: 1 spam, 1 ham". @param {Program} program @param {{votes: number[]}} node */
export function nameNode(program, node) {
  const layer = node.votes.reduce((sum, n) => sum + n, 0);
  return layer === 0 ? 'The root' : `Layer ${layer}: ${votesText(program, node)}`;
}

/**
 * What the last edit of nodes has changed, there and in the whole program; null if the step has tuned no node.
 * @param {Program} program @param {{before: Matrix, after: Matrix}} step @returns {string[] | null}
 */
export function editText(program, step) {
  if (!program.edits.length) return null;
  return [
    ...program.edits.map((edit) => `${nameNode(program, edit)}. At this node: ${errorsText(edit.before, edit.after)}.`),
    `In the whole program: ${errorsText(step.before, step.after)}. ${plural(program.n_changed, 'row')} of the tuning set ${
      program.n_changed === 1 ? 'has' : 'have'
    } another prediction.`,
  ];
}

/** An advantage with its sign. @param {number | null} advantage */
export const advantageText = (advantage) =>
  advantage === null ? 'no rows' : `${advantage < 0 ? '−' : '+'}${Math.abs(advantage).toFixed(2)}`;

/** A node in words, for screen readers. @param {Program} program @param {ProgramNode} node */
export function nodeText(program, node) {
  const parts = [
    `Layer ${node.layer}, ${votesText(program, node)}`,
    `${KINDS[node.kind]}${node.predicted === null ? '' : `, predicts ${nameClass(node.predicted)}`}`,
    `gets ${sizesText(program, node.sizes)}, reach ${percent(node.reach)}`,
  ];
  if (node.kind === 'learner') {
    const advantages = program.classes.map((label, side) => `${nameClass(label)} ${advantageText(node.advantages[side])}`);
    parts.push(`advantage ${advantages.join(', ')}`);
  }
  if (node.weak) parts.push('weak');
  if (node.tuned) parts.push('tuned');
  return `${parts.join('; ')}.`;
}

/**
 * The shortest unique prefixes of the class names, with at least two letters.
 * @param {Label[]} classes @returns {string[]}
 */
export function shortNames(classes) {
  const names = classes.map(labelText);
  return names.map((name) => {
    let length = Math.min(2, name.length);
    while (length < name.length && names.some((other) => other !== name && other.startsWith(name.slice(0, length)))) {
      length += 1;
    }
    return name.slice(0, length);
  });
}
