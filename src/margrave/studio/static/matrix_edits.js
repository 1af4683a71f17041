// Edits of cells as data: parsing, steps, and the format of the API. No page.
// @ts-check

import { count, plural } from './kit_format.js';

/** @typedef {import('./types.js').Edit} ApiEdit */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {"counts" | "percent"} Mode */
/**
 * A wanted count or percentage of the row. `typed`: as the user has set it, if it is shown in another unit.
 * @typedef {{value: number, percent: boolean, typed?: {value: number, percent: boolean}}} Wanted
 */
/** Wanted values by cell, keyed by `cellKey`. @typedef {Record<string, Wanted>} Edits */

/** @param {number} row @param {number} column */
export const cellKey = (row, column) => `${row},${column}`;

/** Round to the digits of a percentage. @param {number} value */
const trimmed = (value) => Number(value.toFixed(3));

/**
 * Parse an input: "5" is a count (in percent mode a percentage), "2%" a percentage of the row.
 * @param {string} text @param {Mode} mode @param {number} total of the row
 * @returns {Wanted | string} or why it is invalid
 */
export function parseWanted(text, mode, total) {
  const found = /^(\d+(?:[.,]\d+)?|[.,]\d+)\s*(%?)$/.exec(text.trim());
  if (!found) return 'Type a number such as 5, or a percentage such as 2%.';
  const value = Number(found[1].replace(',', '.'));
  const percent = found[2] === '%' || mode === 'percent';
  if (percent) return value <= 100 ? { value, percent } : 'A percentage can be at most 100%.';
  if (!Number.isInteger(value)) return 'A count is a whole number; write 2.5% for a percentage.';
  return value <= total ? { value, percent } : `This class has only ${plural(total, 'row')}.`;
}

/** "5" or "2%". @param {Wanted} wanted */
export const wantedText = ({ value, percent }) => (percent ? `${trimmed(value)}%` : count(value));

/** The text of an input; without % in percent mode. @param {Wanted} wanted @param {Mode} mode */
export const inputText = (wanted, mode) =>
  wanted.percent && mode !== 'percent' ? wantedText(wanted) : String(trimmed(wanted.value));

/**
 * The value of a cell, in the units of the mode.
 * @param {number} n @param {number} total @param {Mode} mode @returns {Wanted}
 */
export const held = (n, total, mode) =>
  mode === 'percent'
    ? { value: total ? Number(((n / total) * 100).toFixed(1)) : 0, percent: true }
    : { value: n, percent: false };

/**
 * A value changed by `steps`: counts by 1, percentages by 0.1.
 * @param {Wanted} wanted @param {number} steps @param {number} total @returns {Wanted}
 */
export function stepped({ value, percent }, steps, total) {
  const most = percent ? 100 : total;
  const next = percent ? trimmed(Math.round(value * 10 + steps) / 10) : value + steps;
  return { value: Math.min(most, Math.max(0, next)), percent };
}

/**
 * The number of steps for a drag of `pixels`; large values change faster.
 * @param {number} pixels @param {Wanted} start
 */
export function dragSteps(pixels, start) {
  const grain = start.percent ? Math.max(1, start.value / 10) : Math.max(1, start.value / 60);
  const far = Math.trunc(pixels / 4);
  return Math.round(far * grain);
}

/** @param {Wanted | undefined} a @param {Wanted} b */
export const same = (a, b) => a !== undefined && a.value === b.value && a.percent === b.percent;

/** A wanted value as the user has set it: what is requested. @param {Wanted} wanted */
export const asTyped = (wanted) => wanted.typed ?? wanted;

/**
 * The edits in the units of a mode, to be shown. A percentage has as few digits, at most three, as keep the count.
 * @param {Edits} edits @param {Matrix} matrix @param {Mode} mode @returns {Edits}
 */
export function converted(edits, matrix, mode) {
  const percent = mode === 'percent';
  const entries = Object.entries(edits).map(([key, wanted]) => {
    const [row, column] = key.split(',').map(Number);
    const total = matrix.counts[row].reduce((sum, n) => sum + n, 0);
    const typed = asTyped(wanted);
    if (typed.percent === percent || total === 0) return [key, typed];
    const [inside, outside] = row === column ? [Math.ceil, Math.floor] : [Math.floor, Math.ceil];
    /** @param {number} some a percentage */
    const counted = (some) => inside((Math.round(some * 1000) * total) / 100_000);
    if (!percent) return [key, { value: counted(typed.value), percent, typed }];
    const values = [1, 10, 100, 1000].map((scale) => outside((typed.value * 100 * scale) / total) / scale);
    return [key, { value: values.find((value) => counted(value) === typed.value) ?? values[3], percent, typed }];
  });
  return Object.fromEntries(entries);
}

/** The edits for POST read. @param {Edits} edits @param {Matrix} matrix @returns {ApiEdit[]} */
export function apiEdits(edits, matrix) {
  return Object.entries(edits).map(([key, edit]) => {
    const [row, column] = key.split(',').map(Number);
    const wanted = asTyped(edit);
    const predicted = column === matrix.classes.length ? null : matrix.classes[column];
    return { true: matrix.classes[row], predicted, to: wanted.percent ? wantedText(wanted) : wanted.value };
  });
}
