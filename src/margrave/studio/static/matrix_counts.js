// Sums over the cells of a confusion matrix. No page.
// @ts-check

/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Matrix} Matrix */

/** The number of the rejected rows. @param {Matrix} matrix */
export const rejectedOf = ({ counts }) => counts.reduce((sum, row) => sum + row[row.length - 1], 0);

/** The false positives and the false negatives of a class against all others. @param {Matrix} matrix @param {Label} label */
export function errorsOf({ classes, counts }, label) {
  const at = classes.indexOf(label);
  const others = classes.map((_, place) => place).filter((place) => place !== at);
  return {
    fp: others.reduce((sum, row) => sum + counts[row][at], 0),
    fn: others.reduce((sum, column) => sum + counts[at][column], 0),
  };
}

/** All rows, and how many are correct, rejected, and errors. @param {Matrix} matrix */
export function totalsOf(matrix) {
  const n = matrix.counts.flat().reduce((sum, one) => sum + one, 0);
  const correct = matrix.counts.reduce((sum, row, place) => sum + row[place], 0);
  const rejected = rejectedOf(matrix);
  return { n, correct, rejected, errors: n - correct - rejected };
}
