// What edited limits would lead to, found on the frontier that the page has, before any request. No page.
// @ts-check

import { asTyped } from './matrix_edits.js';

/** @typedef {import('./matrix_edits.js').Edits} Edits */
/** @typedef {import('./types.js').ErrorLimit} ErrorLimit */
/** @typedef {import('./types.js').Frontier} Frontier */
/** @typedef {import('./types.js').Matrix} Matrix */
/**
 * The matrix that limits would lead to. `reachable`: it meets all of them; `approximate`: a request may differ.
 * @typedef {{after: Matrix, reachable: boolean, approximate: boolean}} Outcome
 */

/** What stands before a previewed number: "≈" if a request may differ. @param {Outcome | null} outcome */
export const markOf = (outcome) => (outcome ? (outcome.approximate ? '≈' : '→') : '');

/**
 * The edits of a matrix of two classes as limits of the two kinds of errors. A percentage has at most three
 * digits after the point, so the products are exact.
 * @param {Edits} edits @param {Matrix} matrix @returns {ErrorLimit[] | null} null if an edit limits rejected rows
 */
export function limitsOf(edits, { classes, positive, counts }) {
  const side = classes.findIndex((label) => label === positive);
  const limits = Object.entries(edits).map(([key, edit]) => {
    const { value, percent } = asTyped(edit);
    const [row, column] = key.split(',').map(Number);
    if (column === classes.length) return null;
    const total = counts[row].reduce((sum, n) => sum + n, 0);
    const exact = percent ? (Math.round(value * 1000) * total) / 100_000 : value;
    const error = /** @type {"fp" | "fn"} */ (row === side ? 'fn' : 'fp');
    return row === column
      ? { subject: `correct(${row})`, error, most: total - Math.ceil(exact) }
      : { subject: `${error}(${side})`, error, most: Math.floor(exact) };
  });
  return limits.includes(null) ? null : /** @type {ErrorLimit[]} */ (limits);
}

/**
 * The point that a request for these limits reaches by moving the threshold: the one with the fewest errors
 * that meets them, otherwise the nearest one. The kept limits come first, as in a request.
 * @param {Frontier} frontier @param {number} step the current one @param {ErrorLimit[]} limits the edited ones
 * @param {ErrorLimit[]} kept the earlier ones @param {Matrix} matrix
 * @returns {Outcome | null} null if the frontier is older than the step
 */
export function previewOf(frontier, step, limits, kept, matrix) {
  const curves = frontier.curves.filter(({ steps }) => steps.includes(step));
  if (!curves.length) return null;
  const subjects = limits.map(({ subject }) => subject);
  const first = kept.filter(({ subject }) => !subjects.includes(subject));
  /** @param {ErrorLimit[]} some @param {number} fp @param {number} fn */
  const missed = (some, fp, fn) =>
    some.reduce((sum, { error, most }) => sum + Math.max(0, (error === 'fp' ? fp : fn) - most), 0);
  let best = [Infinity, Infinity, Infinity];
  let [bestFp, bestFn] = [0, 0];
  for (const curve of curves) {
    curve.fp.forEach((fp, place) => {
      const fn = curve.fn[place];
      const priority = missed(first, fp, fn);
      const value = [priority, priority + missed(limits, fp, fn), fp + fn];
      const at = value.findIndex((part, index) => part !== best[index]);
      if (at >= 0 && value[at] < best[at]) [best, bestFp, bestFn] = [value, fp, fn];
    });
  }
  const side = matrix.classes.indexOf(frontier.positive);
  const counts = matrix.classes.map((_, row) => {
    const wrong = row === side ? bestFn : bestFp;
    const right = (row === side ? frontier.n_positive : frontier.n_negative) - wrong;
    return row === 0 ? [right, wrong, 0] : [wrong, right, 0];
  });
  return { after: { ...matrix, counts }, reachable: best[1] === 0, approximate: true };
}
