// One cell of the large matrix: its number, which rolls from old to new, its share, difference, and draft.
// @ts-check

import {
  Icon,
  cellKind,
  count,
  html,
  percent,
  rate,
  signed,
  tint,
  useEffect,
  useReducedMotion,
  useRef,
  useState,
} from './kit.js';
import { wantedText } from './matrix_edits.js';

/** @typedef {import('./matrix_edits.js').Mode} Mode */
/** @typedef {import('./matrix_edits.js').Wanted} Wanted */
/** @typedef {import('./types.js').Matrix} Matrix */

const ROLL_MS = 450;

/** A number that runs from what it was to what it is. @param {number} value @returns {number} */
function useRolling(value) {
  const still = useReducedMotion();
  const [shown, setShown] = useState(value);
  const now = useRef(value);
  useEffect(() => {
    const from = now.current;
    if (still || from === value) {
      now.current = value;
      setShown(value);
      return undefined;
    }
    const began = performance.now();
    let frame = requestAnimationFrame(function roll(time) {
      const share = Math.min(1, Math.max(0, (time - began) / ROLL_MS));
      const eased = 1 - (1 - share) ** 3;
      now.current = from + (value - from) * eased;
      setShown(now.current);
      if (share < 1) frame = requestAnimationFrame(roll);
    });
    return () => cancelAnimationFrame(frame);
  }, [value, still]);
  return shown;
}

const KINDS = { right: 'correct', wrong: 'mistake', none: 'rejected' };

/**
 * What a screen reader says of a cell.
 * @param {Matrix} matrix @param {number} row @param {number} column @param {number} total
 * @param {number} before @param {Wanted | undefined} draft
 */
export function cellLabel(matrix, row, column, total, before, draft) {
  const n = matrix.counts[row][column];
  const kind = cellKind(matrix, row, column);
  const answer = kind === 'none' ? 'rejected' : `called ${matrix.classes[column]}`;
  const changed = before === n ? '' : `, was ${before}`;
  const wanted = draft ? `, changed to ${wantedText(draft)}, not asked yet` : '';
  const cell = `true ${matrix.classes[row]} ${answer}: ${n} of ${total}, ${rate(n, total)}, ${KINDS[kind]}`;
  return `${cell}${changed}${wanted}, editable`;
}

/**
 * The difference to before: good or bad by the kind of the cell.
 * @param {{difference: number, total: number, kind: "right" | "wrong" | "none", mode: Mode}} props
 */
function Difference({ difference, total, kind, mode }) {
  if (difference === 0) return null;
  const tone = kind === 'none' ? 'muted' : (kind === 'right') === difference > 0 ? 'good' : 'bad';
  const points = `${difference > 0 ? '+' : '−'}${percent(Math.abs(difference) / total).replace('%', '')}`;
  return html`<span class=${`cell-difference ${tone}`}>
    ${mode === 'counts' ? signed(difference) : points}
  </span>`;
}

/**
 * What is inside a cell that is not being typed in.
 * @param {{matrix: Matrix, row: number, column: number, total: number, before: number, mode: Mode,
 *   draft: Wanted | undefined, bound: string}} props  `bound`: "≤" or "≥", what an edit here means
 */
export function CellFace({ matrix, row, column, total, before, mode, draft, bound }) {
  const n = matrix.counts[row][column];
  const kind = cellKind(matrix, row, column);
  const shown = useRolling(n);
  const number = mode === 'counts' ? count(Math.round(shown)) : total ? percent(shown / total) : '–';
  const other = mode === 'counts' ? rate(n, total) : count(n);
  return html`<span class="cell-face" aria-hidden="true">
    ${
      draft
        ? html`<span class="cell-number cell-draft"><span class="cell-bound">${bound}</span>${wantedText(draft)}</span>
          <span class="cell-other">now ${mode === 'counts' ? count(n) : rate(n, total)}</span>`
        : html`<span class="cell-number">${number}</span>
          <span class="cell-other">
            ${other}<${Difference} difference=${n - before} total=${total} kind=${kind} mode=${mode} />
          </span>`
    }
    <span class="cell-grip"><${Icon} name="drag" /></span>
  </span>`;
}

/** The strength of a cell's colour by its share of the row. @param {number} n @param {number} total */
export const cellTint = (n, total) => ({ '--tint': tint(total ? n / total : 0) });
