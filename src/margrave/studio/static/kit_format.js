// Numbers, times, labels and errors as text. Import them from kit.js.
// @ts-check

/** @typedef {import('./types.js').Label} Label */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** 4601 -> "4,601". @param {number} n */
export const count = (n) => whole.format(n);

/**
 * A fraction as a percentage: 0.0291 -> "2.9%"; more digits near 0 and 1.
 * @param {number} fraction @param {number} [digits]
 */
export function percent(fraction, digits) {
  if (!Number.isFinite(fraction)) return '–';
  const edge = Math.min(Math.abs(fraction), Math.abs(1 - fraction));
  const places = digits ?? (edge === 0 ? 0 : edge < 0.00995 ? 2 : 1);
  return `${(fraction * 100).toFixed(places)}%`;
}

/** The fraction of `n` in `total` as a percentage; "–" if the total is 0. @param {number} n @param {number} total */
export const rate = (n, total) => (total > 0 ? percent(n / total) : '–');

/** +51, −31, ±0, with a true minus sign. @param {number} n */
export const signed = (n) => (n === 0 ? '±0' : `${n > 0 ? '+' : '−'}${count(Math.abs(n))}`);

/** A difference of two fractions in percentage points: −6.3, ±0. @param {number} difference */
export const points = (difference) =>
  Math.abs(difference) < 5e-5 ? '±0' : `${difference > 0 ? '+' : '−'}${percent(Math.abs(difference)).slice(0, -1)}`;

/** "1 row", "4,601 rows". @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** 0.043 -> "43 ms", 1.24 -> "1.2 s", 75 -> "1 min 15 s". @param {number} s */
export function seconds(s) {
  if (s < 0.995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 59.5) return `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s`;
  return `${Math.floor(Math.round(s) / 60)} min ${Math.round(s) % 60} s`;
}

/** 52428800 -> "50 MB". @param {number} n */
export function bytes(n) {
  const steps = ['bytes', 'kB', 'MB', 'GB'];
  let size = n;
  let step = 0;
  while (size >= 1000 && step < steps.length - 1) {
    size /= 1024;
    step += 1;
  }
  return `${step && size < 9.95 ? size.toFixed(1) : Math.round(size)} ${steps[step]}`;
}

/** The time since a date: "just now", "5 min ago", "3 h ago", then the date. @param {string} iso */
export function when(iso) {
  const then = new Date(iso);
  const minutes = (Date.now() - then.getTime()) / 60000;
  if (Number.isNaN(minutes)) return '';
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${Math.floor(minutes)} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return then.toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}

/** A class label as text, booleans as the server spells them; null stands for rejected. @param {Label | null} label */
export function labelText(label) {
  if (label === null) return 'rejected';
  return typeof label === 'boolean' ? (label ? 'True' : 'False') : String(label);
}

// A class name that needs no quotes in a preference.
const PLAIN = /^[^\s()<>,;"'-]+(?:-(?!>)[^\s()<>,;"'-]+)*$/;

/** A class as it is written in a preference. @param {Label} label */
export function quoted(label) {
  const text = labelText(label);
  if (PLAIN.test(text)) return text;
  return `"${text.replaceAll('"', '""')}"`;
}

// A class that reads as a name within a sentence: it starts with a letter and has no spaces.
const NAME = /^[\p{L}_][\p{L}\p{N}_]*(?:[-./][\p{L}\p{N}_]+)*$/u;
const SENTENCE_WORDS = 'a all and are at in is no none not of on or predicted rejected samples the yes'.split(' ');

/** A class within a sentence, in quotes if it would not read as a name: spam, '0', 'not spam'. @param {Label} label */
export function nameClass(label) {
  const text = labelText(label);
  if (NAME.test(text) && !SENTENCE_WORDS.includes(text.toLowerCase())) return text;
  return text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text}'`;
}

/** Within a sentence: "predicted spam", "predicted '0'", or "rejected" for null. @param {Label | null} predicted */
export const predictedText = (predicted) => (predicted === null ? 'rejected' : `predicted ${nameClass(predicted)}`);

/** The head of a matrix column: "predicted spam", or "rejected" for null. @param {Label | null} predicted */
export const columnText = (predicted) => (predicted === null ? 'rejected' : `predicted ${labelText(predicted)}`);

/** The message of an error. @param {unknown} problem */
export const sentence = (problem) => (problem instanceof Error ? problem.message : String(problem));

/**
 * The two kinds of errors in words: "nonspam predicted spam".
 * @param {{positive: Label, negative: Label | null}} classes
 */
export function errorNames({ positive, negative }) {
  const others = negative === null ? 'others' : nameClass(negative);
  return {
    fp: `${others} ${predictedText(positive)}`,
    fn: `${nameClass(positive)} predicted ${negative === null ? 'another class' : others}`,
  };
}
