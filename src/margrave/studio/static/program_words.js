// What is wanted of a cell, in the words of a preference and in a sentence; and a node in words.
// @ts-check

import { count, percent, plural, rowTotals } from './kit.js';

/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */

// A class that is read as it is; any other is put in quotes.
const PLAIN = /^[^\s()<>,;"'-]+(?:-(?!>)[^\s()<>,;"'-]+)*$/;

/** A class as it is written in a preference. @param {Label} label */
export function quoted(label) {
  const text = String(label);
  if (PLAIN.test(text)) return text;
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}

/** The word that speaks of a cell. @param {Matrix} matrix @param {number} row @param {number} column */
function word(matrix, row, column) {
  const { classes, positive } = matrix;
  if (row === column) return `correct(${quoted(classes[row])})`;
  if (classes.length === 2 && positive !== null) return classes[row] === positive ? 'fn' : 'fp';
  return `errors(${quoted(classes[row])} -> ${quoted(classes[column])})`;
}

/**
 * What a number typed into a cell asks for: at most so many mistakes, at least so many right.
 * @param {Matrix} matrix @param {number} row @param {number} column @param {string} typed
 * @returns {{want: string, sentence: string} | {error: string} | null} null if nothing is asked
 */
export function wanted(matrix, row, column, typed) {
  const text = typed.trim().replace(/\s*%$/, '%');
  if (text === '' || text === String(matrix.counts[row][column])) return null;
  const total = rowTotals(matrix)[row];
  const [from, to] = [matrix.classes[row], matrix.classes[column]];
  const share = text.endsWith('%');
  const value = Number(share ? text.slice(0, -1) : text);
  if (!/^(\d+|\d*\.\d+%|\d+%)$/.test(text) || !Number.isFinite(value)) {
    return { error: `Write a whole number such as 3, or a share such as 2%, for ${from} called ${to}.` };
  }
  if (share ? value > 100 : value > total) {
    return { error: `There are ${plural(total, 'sample')} of ${from} here; ${text} is more.` };
  }
  const right = row === column;
  const amount = share ? `${text} of the` : `${count(value)} of`;
  return {
    want: `${word(matrix, row, column)} ${right ? '>=' : '<='} ${text}`,
    sentence: `${right ? 'at least' : 'at most'} ${amount} ${count(total)} ${from} called ${to}`,
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

/** "2 nonspam, 1 spam"; "no votes yet" at the root. @param {Program} program @param {ProgramNode} node */
export function votesText(program, node) {
  const told = program.classes
    .map((label, side) => ({ label, n: node.votes[side] }))
    .filter(({ n }) => n > 0)
    .map(({ label, n }) => `${n} ${label}`);
  return told.length ? told.join(', ') : 'no votes yet';
}

/** "267 nonspam, 214 spam". @param {Program} program @param {number[]} sizes */
export const sizesText = (program, sizes) =>
  program.classes.map((label, side) => `${count(sizes[side])} ${label}`).join(', ');

/** An advantage with its sign. @param {number | null} advantage */
export const advantageText = (advantage) =>
  advantage === null ? 'none came' : `${advantage < 0 ? '−' : '+'}${Math.abs(advantage).toFixed(2)}`;

/** A node for who does not see the drawing. @param {Program} program @param {ProgramNode} node */
export function nodeText(program, node) {
  const parts = [
    `Layer ${node.layer}, ${votesText(program, node)}`,
    `${KINDS[node.kind]}${node.answer === null ? '' : `, answers ${node.answer}`}`,
    `${sizesText(program, node.sizes)} come here, reach ${percent(node.reach)}`,
  ];
  if (node.kind === 'learner') {
    const told = program.classes.map((label, side) => `${label} ${advantageText(node.advantages[side])}`);
    parts.push(`advantage ${told.join(', ')}`);
  }
  if (node.weak) parts.push('weak');
  if (node.tuned) parts.push('tuned');
  return `${parts.join('; ')}.`;
}

/**
 * The shortest beginnings that tell the classes apart, with at least two letters.
 * @param {Label[]} classes @returns {string[]}
 */
export function shortNames(classes) {
  const names = classes.map(String);
  return names.map((name) => {
    let length = Math.min(2, name.length);
    while (length < name.length && names.some((other) => other !== name && other.startsWith(name.slice(0, length)))) {
      length += 1;
    }
    return name.slice(0, length);
  });
}
