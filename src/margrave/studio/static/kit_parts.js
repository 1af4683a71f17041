// The small components that every part of the page uses. Import them from kit.js.
// @ts-check

import { getFile } from './api.js';
import { announce, html, useEffect, useErrorBoundary, useRef, useState } from './kit_core.js';
import { columnText, count, labelText, rate, sentence } from './kit_format.js';

/** @typedef {import('./types.js').Matrix} Matrix */

/**
 * A message in a box. `kind`: "info", "good", "warn" or "bad" (an alert for screen readers).
 * @param {{kind?: "info" | "good" | "warn" | "bad", title?: string, children?: any, action?: any}} props
 */
export function Notice({ kind = 'info', title, children, action }) {
  return html`<div class=${`notice notice-${kind}`} role=${kind === 'bad' ? 'alert' : undefined}>
    <div class="notice-text">
      ${title ? html`<strong>${title}</strong>` : null}
      ${children ? html`<div>${children}</div>` : null}
    </div>
    ${action ? html`<div class="notice-action">${action}</div>` : null}
  </div>`;
}

/** A spinner with a label. @param {{label?: string}} props */
export function Spinner({ label = 'Loading' }) {
  return html`<div class="spinner" role="status">
    <span class="spinner-ring" aria-hidden="true"></span><span>${label}</span>
  </div>`;
}

/** A message in place of missing content, with an action. @param {{title: string, children?: any, action?: any}} props */
export function Empty({ title, children, action }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children ? html`<p class="muted">${children}</p>` : null} ${action ?? null}
  </div>`;
}

/**
 * A dialog box over the page; Escape and the cross close it, the focus stays inside and returns.
 * @param {{title: string, onClose: () => void, children?: any, actions?: any}} props
 */
export function Modal({ title, onClose, children, actions }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const back = document.activeElement;
    const own = box.current;
    own?.showModal();
    return () => {
      own?.close(); // an open box would keep the focus
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, []);
  /** @param {Event} event */
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog class="modal" ref=${box} aria-labelledby="modal-title" onCancel=${cancel}>
    <div class="modal-head">
      <h2 id="modal-title">${title}</h2>
      <button type="button" class="button-icon" aria-label="Close" onClick=${onClose}>
        <${Icon} name="close" />
      </button>
    </div>
    <div class="modal-body">${children}</div>
    ${actions ? html`<div class="modal-actions">${actions}</div>` : null}
  </dialog>`;
}

/**
 * A link to download a file, which the server may need seconds to prepare, or may refuse.
 * @param {{href: string, name: string, children?: any, note?: any}} props
 */
export function DownloadLink({ href, name, children, note }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  useEffect(() => setProblem(''), [href]);
  /** @param {MouseEvent} event */
  const download = async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the browser opens the link elsewhere
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem('');
    announce(`Preparing ${name}.`);
    try {
      saveFile(await getFile(href), name);
      announce(`${name} is ready.`);
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  };
  return html`<div class="download-box">
    <a class="download" href=${href} download=${name} aria-busy=${busy} aria-disabled=${busy} onClick=${download}>
      ${busy ? html`<span class="spinner-ring" aria-hidden="true"></span>` : html`<${Icon} name="download" />`}
      <span class="download-name">${children}</span>
      ${busy ? html`<span class="muted">preparing the file</span>` : note ? html`<span class="muted">${note}</span>` : null}
    </a>
    ${problem ? html`<p class="bad small" role="alert">${problem}</p>` : null}
  </div>`;
}

/** Save a file that the page has made. @param {Blob} content @param {string} name */
export function saveFile(content, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href)); // after the click is handled
}

/**
 * A progress bar; `label` is for screen readers. A total of 0 shows an empty bar.
 * @param {{done: number, total: number, label: string}} props
 */
export function Bar({ done, total, label }) {
  const fraction = total > 0 ? Math.min(1, done / total) : 0;
  return html`<div
    class="bar"
    role="progressbar"
    aria-label=${label}
    aria-valuemin="0"
    aria-valuemax="100"
    aria-valuenow=${Math.round(fraction * 100)}
  >
    <div class="bar-fill" style=${{ width: `${fraction * 100}%` }}></div>
  </div>`;
}

/**
 * Catches an error in its children, so that the rest of the page still works. `what` begins the message.
 * @param {{what: string, children?: any}} props
 */
export function Boundary({ what, children }) {
  const [error, reset] = useErrorBoundary((problem) => console.error(problem));
  if (!error) return children;
  const again = html`<button type="button" class="button" onClick=${reset}>Try again</button>`;
  return html`<${Notice} kind="bad" title=${`${what} could not be shown.`} action=${again}>
    ${sentence(error)} Nothing that was saved is lost.
  <//>`;
}

/** A short word in a box. @param {{kind?: "info" | "good" | "warn" | "bad", children?: any}} props */
export const Tag = ({ kind = 'info', children }) => html`<span class=${`tag tag-${kind}`}>${children}</span>`;

/**
 * A labelled control: the first child must be the control with id `id`.
 * @param {{id: string, label: any, hint?: any, children?: any}} props
 */
export const Field = ({ id, label, hint, children }) =>
  html`<div class="field">
    <label for=${id}>${label}</label>
    ${children} ${hint ? html`<p class="field-hint">${hint}</p>` : null}
  </div>`;

/** A text whose lines may also break after "_". @param {{text: string}} props */
export const Breakable = ({ text }) => text.split(/(?<=_)/).map((part, at) => (at ? html`<wbr />${part}` : part));

/** @param {Matrix} matrix @param {number} row @param {number} column @returns {"right" | "wrong" | "none"} */
export const cellKind = (matrix, row, column) =>
  column === matrix.classes.length ? 'none' : column === row ? 'right' : 'wrong';

/** The number of rows of each true class. @param {Matrix} matrix @returns {number[]} */
export const rowTotals = (matrix) => matrix.counts.map((row) => row.reduce((sum, n) => sum + n, 0));

/** The colour strength of a cell, as a percentage for color-mix. @param {number} fraction */
export const tint = (fraction) => `${(6 + 20 * Math.sqrt(Math.min(1, Math.max(0, fraction)))).toFixed(1)}%`;

/**
 * A small read-only confusion matrix, without the rejected column if it is empty.
 * @param {{matrix: Matrix, caption: string}} props
 */
export function SmallMatrix({ matrix, caption }) {
  const totals = rowTotals(matrix);
  const k = matrix.classes.length;
  const rejects = matrix.counts.some((row) => row[k] > 0);
  const columns = [...matrix.classes, ...(rejects ? [null] : [])];
  return html`<div class="scroll-x" tabindex="0" role="group" aria-label=${caption}>
    <table class="small-matrix">
      <caption class="hidden">${caption}</caption>
      <thead>
        <tr>
          <td></td>
          ${columns.map((predicted) => html`<th scope="col"><${Breakable} text=${columnText(predicted)} /></th>`)}
        </tr>
      </thead>
      <tbody>
        ${matrix.classes.map(
          (label, row) =>
            html`<tr>
              <th scope="row"><${Breakable} text=${`true ${labelText(label)}`} /></th>
              ${columns.map((_, column) => {
                const n = matrix.counts[row][column];
                const fraction = totals[row] ? n / totals[row] : 0;
                return html`<td
                  class=${`cell-${cellKind(matrix, row, column)}`}
                  style=${{ '--tint': tint(fraction) }}
                >
                  <b>${count(n)}</b><small>${rate(n, totals[row])}</small>
                </td>`;
              })}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Drawn on a 16 by 16 grid, in the colour of the text. @type {Record<string, string>} */
const ICONS = {
  close: 'M4 4l8 8M12 4l-8 8',
  download: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10',
  undo: 'M6 3L2.5 6.5 6 10M3 6.5h6a4 4 0 0 1 0 8H7',
  redo: 'M10 3l3.5 3.5L10 10M13 6.5H7a4 4 0 0 0 0 8h2',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  drag: 'M8 2.5v11M5.5 5L8 2.5 10.5 5M5.5 11L8 13.5 10.5 11',
  upload: 'M8 11V3M4.5 6L8 2.5 11.5 6M3 13.5h10',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14',
  check: 'M3 8.5l3.2 3.2L13 4.8',
  alert: 'M8 4.5v4.2M8 11.3v.2M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13',
  moon: 'M13.2 9.8A5.8 5.8 0 0 1 6.2 2.8a5.8 5.8 0 1 0 7 7z',
  auto: 'M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4zM8 1.8v12.4M8 5h4.8M8 8h6M8 11h4.8',
  compare: 'M2.5 5h9M9 2.5L11.5 5 9 7.5M13.5 11h-9M7 8.5L4.5 11 7 13.5',
  edit: 'M3 13l.6-2.8L10.8 3l2.2 2.2L5.8 12.4 3 13z',
  trash: 'M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4',
};

/** A line drawing of 16 by 16, hidden from screen readers. @param {{name: string}} props */
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
