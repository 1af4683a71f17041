// Editing cells of the large matrix: by typing, by steps, and by dragging.
// @ts-check

import { count, rate, rowTotals, useRef, useState } from './kit.js';
import { cellKey, dragSteps, held, inputText, parseWanted, same, stepped } from './matrix_edits.js';

/** @typedef {import('./matrix_edits.js').Edits} Edits */
/** @typedef {import('./matrix_edits.js').Mode} Mode */
/** @typedef {import('./matrix_edits.js').Wanted} Wanted */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {{row: number, column: number}} Place */
/**
 * The cell that is being edited; `begun`: whether a key started it; `was`: its earlier edit.
 * @typedef {Place & {text: string, begun: boolean, was: Wanted | undefined}} Typing
 */
/**
 * A pressed cell; `fixed` if it cannot be dragged.
 * @typedef {Place & {x: number, y: number, start: Wanted, was: Wanted | undefined, fixed: boolean,
 *   moved: boolean}} Pressed
 */

const DRAG_FROM = 5;

/**
 * @param {{matrix: Matrix, mode: Mode, edits: Edits, still: boolean, change: (edits: Edits) => void,
 *   tell: (problem: string) => void, choose: (place: Place) => void, focus: (place: Place) => void}} options
 *   `still`: nothing can be edited now; `tell`: reports why the input is invalid, or ""
 */
export function useEditing({ matrix, mode, edits, still, change, tell, choose, focus }) {
  const [typing, setTyping] = useState(/** @type {Typing | null} */ (null));
  const [problem, setProblem] = useState('');
  const totals = rowTotals(matrix);

  /** @param {Place} place */
  const draft = ({ row, column }) => edits[cellKey(row, column)];
  /** @param {Place} place */
  const now = ({ row, column }) => held(matrix.counts[row][column], totals[row], mode);
  /** @param {Place} place */
  const nowText = ({ row, column }) =>
    mode === 'percent' ? rate(matrix.counts[row][column], totals[row]) : count(matrix.counts[row][column]);
  /** @param {Place} place @param {Wanted | undefined} wanted */
  const put = ({ row, column }, wanted) => {
    const { [cellKey(row, column)]: _, ...others } = edits;
    change(wanted ? { ...others, [cellKey(row, column)]: wanted } : others);
  };
  /**
   * Change a cell by `steps` from `start`; its current value removes the edit.
   * @param {Place} place @param {Wanted} start @param {number} steps
   */
  const stepFrom = (place, start, steps) => {
    const wanted = stepped(start, steps, totals[place.row]);
    if (!same(draft(place), wanted)) put(place, same(now(place), wanted) ? undefined : wanted);
    return wanted;
  };
  /** @param {string} text */
  const report = (text) => {
    setProblem(text);
    tell(text);
  };
  /** @param {Place} place @param {string} text */
  const type = (place, text) => {
    const wanted = text.trim() === '' ? undefined : parseWanted(text, mode, totals[place.row]);
    report(typeof wanted === 'string' ? wanted : '');
    put(place, typeof wanted === 'object' ? wanted : undefined);
    setTyping((at) => at && { ...at, text });
  };
  /** Start to edit a cell, with its value or with a first key. @param {Place} place @param {string} [key] */
  const begin = (place, key) => {
    if (still) return;
    choose(place);
    const was = draft(place);
    setTyping({ ...place, text: key ?? inputText(was ?? now(place), mode), begun: key !== undefined, was });
    if (key !== undefined) type(place, key);
  };
  /** @param {Place} place @param {number} steps */
  const step = (place, steps) => {
    if (still) return;
    report('');
    const wanted = stepFrom(place, draft(place) ?? now(place), steps);
    setTyping((at) => at && { ...at, text: inputText(wanted, mode) });
  };
  /** Stop editing, and keep or drop the edit. @param {"keep" | "drop"} how */
  const leave = (how) => {
    if (!typing) return;
    setTyping(null);
    report('');
    if (how === 'drop') {
      put(typing, typing.was);
      focus(typing);
    }
  };
  /** Remove the edit of a cell. @param {Place} place */
  const clear = (place) => draft(place) && put(place, undefined);
  return { typing, problem, still, draft, now, nowText, put, stepFrom, type, begin, step, leave, clear };
}

/** @typedef {ReturnType<typeof useEditing>} Editing */

/**
 * Pressing a cell: a click starts to edit it, a drag upwards or to the right increases it.
 * @param {Editing} editing @param {(place: Place) => void} choose @param {(place: Place) => void} focus
 */
export function useDrag(editing, choose, focus) {
  const pressed = useRef(/** @type {Pressed | null} */ (null));
  /** @param {PointerEvent} event @param {Place} place */
  const press = (event, place) => {
    const target = /** @type {Element} */ (event.target);
    if (editing.still || event.button !== 0 || target.closest('input')) return;
    // A finger scrolls the page except on the grip; a mouse can drag anywhere in the cell.
    const fixed = event.pointerType === 'touch' && !target.closest('.cell-grip');
    const was = editing.draft(place);
    const start = was ?? editing.now(place);
    pressed.current = { ...place, x: event.clientX, y: event.clientY, start, was, fixed, moved: false };
  };
  /** @param {PointerEvent} event */
  const move = (event) => {
    const at = pressed.current;
    if (!at || at.fixed) return;
    const [right, down] = [event.clientX - at.x, event.clientY - at.y];
    if (!at.moved) {
      if (Math.hypot(right, down) < DRAG_FROM) return;
      at.moved = true;
      choose(at);
      /** @type {Element} */ (event.currentTarget).setPointerCapture(event.pointerId);
    }
    editing.stepFrom(at, at.start, dragSteps(right - down, at.start));
  };
  /** @param {PointerEvent} event */
  const release = (event) => {
    const at = pressed.current;
    pressed.current = null;
    if (!at) return;
    if (event.type === 'pointercancel') editing.put(at, at.was);
    else if (at.moved) focus(at);
    else editing.begin(at);
  };
  return { press, move, release };
}
