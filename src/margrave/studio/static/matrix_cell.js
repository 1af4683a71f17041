// One cell of the large matrix: its number, animated from old to new, its rate, difference, and draft.
// @ts-check

import {
  Icon,
  cellKind,
  count,
  html,
  percent,
  points,
  nameClass,
  predictedText,
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

/** A number that is animated from its old to its new value. @param {number} value @returns {number} */
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
      const fraction = Math.min(1, Math.max(0, (time - began) / ROLL_MS));
      const eased = 1 - (1 - fraction) ** 3;
      now.current = from + (value - from) * eased;
      setShown(now.current);
      if (fraction < 1) frame = requestAnimationFrame(roll);
    });
    return () => cancelAnimationFrame(frame);
  }, [value, still]);
  return shown;
}

const KINDS = { right: 'correct', wrong: 'error', none: 'rejected' };

/**
 * A cell in words, for screen readers.
 * @param {Matrix} matrix @param {number} row @param {number} column @param {number} total
 * @param {number} before @param {Wanted | undefined} draft @param {number | null} preview
 */
export function cellLabel(matrix, row, column, total, before, draft, preview) {
  const n = matrix.counts[row][column];
  const kind = cellKind(matrix, row, column);
  const predicted = predictedText(kind === 'none' ? null : matrix.classes[column]);
  const changed = before === n ? '' : `, was ${count(before)}`;
  const wanted = draft ? `, changed to ${wantedText(draft)}, not requested yet` : '';
  const cell = `true ${nameClass(matrix.classes[row])} ${predicted}: ${count(n)} of ${count(total)}, ${rate(n, total)}, ${KINDS[kind]}`;
  const outcome = preview === null || draft || preview === n ? '' : `, preview ${count(preview)}`;
  return `${cell}${changed}${wanted}${outcome}, editable`;
}

/**
 * The difference to the step that is compared: good or bad by the kind of the cell.
 * @param {{difference: number, total: number, kind: "right" | "wrong" | "none", mode: Mode}} props
 */
function Difference({ difference, total, kind, mode }) {
  if (difference === 0) return null;
  const tone = kind === 'none' ? 'muted' : (kind === 'right') === difference > 0 ? 'good' : 'bad';
  return html`<span class=${`cell-difference ${tone}`}>
    ${mode === 'counts' ? signed(difference) : points(difference / total)}
  </span>`;
}

/** The large number, set so small that it fits. @param {{text: string, mark?: string, kind?: string}} props */
const Large = ({ text, mark = '', kind = '' }) =>
  html`<span class=${`cell-number ${kind}`} style=${fitted(mark + text)}>
    ${mark ? html`<span class="cell-bound">${mark}</span>` : null}${text}
  </span>`;

/**
 * The content of a cell that is not being edited.
 * @param {{matrix: Matrix, row: number, column: number, total: number, before: number, mode: Mode,
 *   draft: Wanted | undefined, bound: string, preview: number | null, mark: string, reachable: boolean}} props
 *   `bound`: "≤" or "≥", what an edit here means; `preview`: the number that the edits would lead to;
 *   `mark`: stands before it; `reachable`: it meets all edits
 */
export function CellFace({ matrix, row, column, total, before, mode, draft, bound, preview, mark, reachable }) {
  const n = matrix.counts[row][column];
  const kind = cellKind(matrix, row, column);
  const shown = useRolling(n);
  /** @param {number} some */
  const text = (some) => (mode === 'counts' ? count(Math.round(some)) : total ? percent(some / total) : '–');
  const other = mode === 'counts' ? rate(n, total) : count(n);
  if (preview !== null && !draft) {
    return html`<span class="cell-face" aria-hidden="true">
      <${Large} text=${text(preview)} mark=${preview === n ? '' : mark} />
      <span class="cell-other">
        ${preview === n ? other : html`<span class="cell-now">now ${text(n)}</span>`}
        <${Difference} difference=${preview - before} total=${total} kind=${kind} mode=${mode} />
      </span>
      <span class="cell-grip"><${Icon} name="drag" /></span>
    </span>`;
  }
  return html`<span class="cell-face" aria-hidden="true">
    ${
      draft
        ? html`<${Large} text=${wantedText(draft)} mark=${bound} kind="cell-draft" />
          <span class="cell-other">
            ${preview === null || reachable ? `now ${text(n)}` : `nearest ${mark} ${text(preview)}`}
          </span>`
        : html`<${Large} text=${text(shown)} />
          <span class="cell-other">
            ${other}<${Difference} difference=${n - before} total=${total} kind=${kind} mode=${mode} />
          </span>`
    }
    <span class="cell-grip"><${Icon} name="drag" /></span>
  </span>`;
}

/** The number of characters that have to fit in a line of the cell. @param {string} text */
export const fitted = (text) => ({ '--length': text.length });

/** The strength of a cell's colour by its fraction of the row. @param {number} n @param {number} total */
export const cellTint = (n, total) => ({ '--tint': tint(total ? n / total : 0) });
