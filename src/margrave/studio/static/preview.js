// What edited limits would lead to, found on the frontier that the page has, before any request. No page.
// @ts-check

import { asTyped } from './matrix_edits.js';

/** @typedef {import('./matrix_edits.js').Edits} Edits */
/** @typedef {import('./types.js').ErrorLimit} ErrorLimit */
/** @typedef {import('./types.js').Frontier} Frontier */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Step} Step */
/** A number for each of the two kinds of errors. @typedef {{fp: number, fn: number}} Errors */
/**
 * The matrix that limits would lead to. `reachable`: it meets all of them; `approximate`: a request may differ.
 * @typedef {{after: Matrix, reachable: boolean, approximate: boolean}} Outcome
 */

/** What stands before a previewed number: "≈" if a request may differ. @param {Outcome | null} outcome */
export const markOf = (outcome) => (outcome ? (outcome.approximate ? '≈' : '→') : '');

/**
 * The edits of a matrix of two classes as limits of the two kinds of errors; `raised`: the matrix already meets one of
 * them with rows to spare. A percentage has at most three digits after the point, so the products are exact.
 * @param {Edits} edits @param {Matrix} matrix
 * @returns {{limits: ErrorLimit[], raised: boolean} | null} null if an edit limits rejected rows
 */
function limitsOf(edits, { classes, positive, counts }) {
  const side = classes.findIndex((label) => label === positive);
  let raised = false;
  /** @type {ErrorLimit[]} */
  const limits = [];
  for (const [key, edit] of Object.entries(edits)) {
    const { value, percent } = asTyped(edit);
    const [row, column] = key.split(',').map(Number);
    if (column === classes.length) return null;
    const total = counts[row].reduce((sum, n) => sum + n, 0);
    const exact = percent ? (Math.round(value * 1000) * total) / 100_000 : value;
    const error = row === side ? 'fn' : 'fp';
    raised ||= row === column ? exact < counts[row][row] : exact > counts[row][column];
    limits.push(
      row === column
        ? { subject: `correct(${row})`, error, most: total - exact }
        : { subject: `${error}(${side})`, error, most: exact },
    );
  }
  return { limits, raised };
}

/**
 * What an error of each kind costs by a goal such as "fewest fn" or "lowest cost of fp + 20 fn".
 * @param {string} goal @returns {Errors | null} null if it counts anything else
 */
export function costsOf(goal) {
  const costs = { fp: 0, fn: 0 };
  for (const term of goal.replace(/^(fewest|lowest cost of) /, '').split(' + ')) {
    const [, cost, kind] = /^(?:([\d.]+) )?(fp|fn|errors)$/.exec(term) ?? [];
    if (!kind) return null;
    if (kind !== 'fn') costs.fp += Number(cost ?? 1);
    if (kind !== 'fp') costs.fn += Number(cost ?? 1);
  }
  return costs;
}

/**
 * The point that a request for edits of two classes reaches by moving the threshold: the nearest to the limits; of
 * several, one that predicts both classes, with the lowest cost by the goal, then with the fewest errors.
 * @param {Frontier} frontier @param {Step} step the current one @param {Edits} edits
 * @param {boolean} keeps whether the limits and the goal of the step hold too @param {string | null} then the chosen goal
 * @returns {Outcome | null} null if these limits or this goal need the server, or the frontier is older than the step
 */
export function previewOf(frontier, step, edits, keeps, then) {
  const { limits: own, raised } = limitsOf(edits, step.after) ?? { limits: [], raised: false };
  const earlier = keeps ? step.limits : [];
  const curves = frontier.curves.filter(({ steps }) => steps.includes(step.number));
  if (!own.length || !earlier || !curves.length) return null;
  const limits = [...own, ...earlier.filter(({ subject }) => !own.some((one) => one.subject === subject))];
  // A raised cell states its own goal: the fewest errors that the edits do not limit.
  const goal = then ?? (earlier.length && !raised ? step.goal : null);
  const limited = new Set(own.map(({ error }) => error));
  const usual = { fp: limited.size === 2 || limited.has('fn') ? 1 : 0, fn: limited.size === 2 || limited.has('fp') ? 1 : 0 };
  const costs = goal ? costsOf(goal) : usual;
  if (!costs) return null;
  const { n_positive, n_negative } = frontier;
  let best = [Infinity];
  let [bestFp, bestFn] = [0, 0];
  for (const curve of curves) {
    curve.fp.forEach((fp, place) => {
      const fn = curve.fn[place];
      const missed = limits.reduce((sum, { error, most }) => sum + Math.max(0, (error === 'fp' ? fp : fn) - most), 0);
      const predicted = fp + n_positive - fn; // positive
      const oneClass = predicted === 0 || predicted === n_positive + n_negative ? 1 : 0;
      const value = [missed, oneClass, costs.fp * fp + costs.fn * fn, fp + fn];
      const at = value.findIndex((part, index) => part !== best[index]);
      if (at >= 0 && value[at] < best[at]) [best, bestFp, bestFn] = [value, fp, fn];
    });
  }
  const matrix = step.after;
  const side = matrix.classes.indexOf(frontier.positive);
  const counts = matrix.classes.map((_, row) => {
    const wrong = row === side ? bestFn : bestFp;
    const right = (row === side ? n_positive : n_negative) - wrong;
    return row === 0 ? [right, wrong, 0] : [wrong, right, 0];
  });
  return { after: { ...matrix, counts }, reachable: best[0] === 0, approximate: true };
}
