// The large matrix as a grid of cells: arrow keys move between them, and each can be edited.
// @ts-check

import { Breakable, cellKind, columnText, count, html, labelText, rowTotals, useLayoutEffect, useRef } from './kit.js';
import { CellFace, cellLabel, cellTint, fitted } from './matrix_cell.js';
import { useDrag, useEditing } from './matrix_editing.js';
import { cellKey } from './matrix_edits.js';
import { markOf } from './preview.js';

/** @typedef {import('./matrix_editing.js').Editing} Editing */
/** @typedef {import('./matrix_editing.js').Place} Place */
/** @typedef {import('./matrix_editing.js').Typing} Typing */
/** @typedef {import('./matrix_edits.js').Edits} Edits */
/** @typedef {import('./matrix_edits.js').Mode} Mode */
/** @typedef {import('./preview.js').Outcome} Outcome */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Matrix} Matrix */

/** @type {Record<string, [number, number]>} */
const ARROWS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/**
 * The width of the widest number in digits; a comma counts half, and "95.3%" as five.
 * @param {Matrix} matrix
 */
const digits = (matrix) =>
  Math.max(5, ...matrix.counts.flat().map((n) => count(n).length - (count(n).split(',').length - 1) / 2));

/**
 * The input field in the cell that is being edited.
 * @param {{label: string, bound: string, typing: Typing, editing: Editing, mode: Mode, ask: () => void}} props
 */
function CellInput({ label, bound, typing, editing, mode, ask }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  // Before the next paint, so that the next key reaches the field.
  useLayoutEffect(() => {
    field.current?.focus();
    if (!typing.begun) field.current?.select();
  }, []);
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const size = event.shiftKey ? 10 : 1;
    event.stopPropagation();
    if (event.key === 'Escape') editing.leave('drop');
    else if (event.key === 'Enter') ask();
    else if (event.key === 'ArrowUp') editing.step(typing, size);
    else if (event.key === 'ArrowDown') editing.step(typing, -size);
    else return;
    event.preventDefault();
  };
  return html`<span class="cell-face">
    <span class="cell-number cell-typing" style=${fitted(`${bound}${typing.text}%`)}>
      <span class="cell-bound">${bound}</span>
      <input
        ref=${field}
        class="cell-input"
        type="text"
        inputmode="decimal"
        autocomplete="off"
        size=${Math.max(2, typing.text.length)}
        aria-label=${`${label}. ${bound === '≥' ? 'At least' : 'At most'}: a number, or a percentage of the row`}
        aria-invalid=${editing.problem !== ''}
        aria-describedby="matrix-sentence"
        value=${typing.text}
        onInput=${(/** @type {any} */ event) => editing.type(typing, event.target.value)}
        onKeyDown=${keys}
        onBlur=${() => editing.leave('keep')}
      />
      ${mode === 'percent' ? html`<span class="cell-unit">%</span>` : null}
    </span>
    <span class="cell-other">now ${editing.nowText(typing)}</span>
  </span>`;
}

/**
 * @param {{matrix: Matrix, before: Matrix, place: Place, total: number, mode: Mode, editing: Editing,
 *   drag: ReturnType<typeof useDrag>, chosen: boolean, choose: (place: Place) => void, ask: () => void,
 *   keys: (event: KeyboardEvent, place: Place) => void, outcome: Outcome | null, focused: boolean}} props
 */
function Cell({ matrix, before, place, total, mode, editing, drag, chosen, choose, ask, keys, outcome, focused }) {
  const { row, column } = place;
  const kind = cellKind(matrix, row, column);
  const draft = editing.draft(place);
  const was = before.counts[row][column];
  const { typing } = editing;
  const open = typing !== null && typing.row === row && typing.column === column;
  const preview = outcome ? outcome.after.counts[row][column] : null;
  const label = cellLabel(matrix, row, column, total, was, draft, preview);
  const bound = kind === 'right' ? '≥' : '≤';
  return html`<td
    role="gridcell"
    data-cell=${cellKey(row, column)}
    class=${`matrix-cell cell-${kind} ${draft ? 'matrix-cell-draft' : ''} ${open ? 'matrix-cell-open' : ''} ${focused ? 'matrix-focus' : ''}`}
    style=${cellTint(matrix.counts[row][column], total)}
    tabindex=${chosen ? 0 : -1}
    aria-readonly=${editing.still}
    onFocus=${() => !chosen && choose(place)}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => keys(event, place)}
    onPointerDown=${(/** @type {PointerEvent} */ event) => drag.press(event, place)}
    onPointerMove=${drag.move}
    onPointerUp=${drag.release}
    onPointerCancel=${drag.release}
  >
    ${
      open
        ? html`<${CellInput}
          label=${label}
          bound=${bound}
          typing=${typing}
          editing=${editing}
          mode=${mode}
          ask=${ask}
        />`
        : html`<span class="hidden">${label}</span>
          <${CellFace}
            matrix=${matrix}
            row=${row}
            column=${column}
            total=${total}
            before=${was}
            mode=${mode}
            draft=${draft}
            bound=${bound}
            preview=${preview}
            mark=${markOf(outcome)}
            reachable=${outcome?.reachable ?? true}
          />`
    }
  </td>`;
}

/** @param {{columns: (Label | null)[], focus: Label | null}} props */
const Head = ({ columns, focus }) =>
  html`<thead>
    <tr role="row">
      <td class="matrix-corner"></td>
      ${columns.map(
        (predicted) =>
          html`<th
            scope="col"
            role="columnheader"
            class=${predicted !== null && predicted === focus ? 'matrix-focus' : ''}
            title=${columnText(predicted)}
          >
            ${predicted === null ? null : html`<small>predicted</small>`}
            <span class="matrix-label"><${Breakable} text=${labelText(predicted)} /></span>
          </th>`,
      )}
    </tr>
  </thead>`;

/**
 * @param {{matrix: Matrix, before: Matrix, mode: Mode, edits: Edits, still: boolean,
 *   change: (edits: Edits) => void, tell: (problem: string) => void, ask: () => void,
 *   chosen: Place, choose: (place: Place) => void, outcome: Outcome | null, focus: Label | null}} props
 *   `still`: nothing can be edited now; `outcome`: the preview; `focus`: the class whose row and column are marked
 */
export function MatrixGrid({ matrix, before, mode, edits, still, change, tell, ask, chosen, choose, outcome, focus }) {
  const grid = useRef(/** @type {HTMLElement | null} */ (null));
  const totals = rowTotals(matrix);
  const k = matrix.classes.length;
  /** @param {Place} place */
  const focusCell = ({ row, column }) => {
    const cell = grid.current?.querySelector(`[data-cell="${cellKey(row, column)}"]`);
    /** @type {HTMLElement | null | undefined} */ (cell)?.focus();
  };
  const editing = useEditing({ matrix, mode, edits, still, change, tell, choose, focus: focusCell });
  const drag = useDrag(editing, choose, focusCell);
  /** @param {Place} place */
  const askFrom = (place) => {
    if (editing.problem) return;
    editing.leave('keep');
    focusCell(place);
    ask();
  };
  /** @param {KeyboardEvent} event @param {Place} place */
  const keys = (event, place) => {
    const { key } = event;
    const control = event.ctrlKey || event.metaKey;
    if (event.altKey || editing.typing || (control && key !== 'Enter')) return;
    const arrow = ARROWS[key];
    if (arrow) {
      const row = Math.min(k - 1, Math.max(0, place.row + arrow[0]));
      const column = Math.min(k, Math.max(0, place.column + arrow[1]));
      choose({ row, column });
      focusCell({ row, column });
    } else if (key === 'Enter' && control) ask();
    else if (key === 'Enter' || key === 'F2') editing.begin(place);
    else if (/^[0-9.,]$/.test(key)) editing.begin(place, key);
    else if (key === '+' || key === '-') editing.step(place, key === '+' ? 1 : -1);
    else if (key === 'Delete' || key === 'Backspace' || key === 'Escape') editing.clear(place);
    else return;
    event.preventDefault();
  };
  const columns = [...matrix.classes, null];
  return html`<div class="scroll-x matrix-scroll">
    <table
      class=${`matrix matrix-${k <= 2 ? 'large' : k <= 4 ? 'middle' : 'dense'}`}
      style=${{ '--columns': k + 1, '--digits': digits(matrix) }}
      role="grid"
      aria-label="Confusion matrix"
      ref=${grid}
    >
      <${Head} columns=${columns} focus=${focus} />
      <tbody>
        ${matrix.classes.map(
          (label, row) =>
            html`<tr role="row" key=${row}>
              <th scope="row" role="rowheader" class=${label === focus ? 'matrix-focus' : ''} title=${`true ${labelText(label)}`}>
                <small>true</small><span class="matrix-label"><${Breakable} text=${labelText(label)} /></span>
                <small class="matrix-total">${count(totals[row])}</small>
              </th>
              ${columns.map(
                (predicted, column) =>
                  html`<${Cell}
                    key=${column}
                    matrix=${matrix}
                    before=${before}
                    place=${{ row, column }}
                    total=${totals[row]}
                    mode=${mode}
                    editing=${editing}
                    drag=${drag}
                    chosen=${chosen.row === row && chosen.column === column}
                    choose=${choose}
                    ask=${() => askFrom({ row, column })}
                    keys=${keys}
                    outcome=${outcome}
                    focused=${focus !== null && (label === focus || predicted === focus)}
                  />`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
