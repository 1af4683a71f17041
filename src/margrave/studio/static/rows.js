// A table of rows, sortable, page by page, with the vote of every member; and the rows in a cell of the matrix.
// @ts-check

import { get, query } from './api.js';
import { count, DownloadLink, Empty, html, labelText, Notice, percent, sentence, Spinner, useEffect, useLoad, useRef, useState } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').CellChoice} CellChoice */
/** @typedef {import('./types.js').ChangedRow} ChangedRow */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {import('./types.js').Row} Row */
/** @typedef {{by: string, descending: boolean}} Sort */

const PAGE = 25;
const ANY = 'any';
const REJECTED = 'rejected';

/**
 * One page of rows from the server, with its order.
 * @param {string} path @param {Record<string, any>} choice what selects the rows @param {any[]} deps
 */
export function useRows(path, choice, deps) {
  const [sort, setSort] = useState(/** @type {Sort} */ ({ by: 'certainty', descending: true }));
  // The offset belongs to one choice of rows; any other choice begins at its first page.
  const key = JSON.stringify([path, choice, sort, deps]);
  const [turned, setTurned] = useState({ key, offset: 0 });
  const offset = turned.key === key ? turned.offset : 0;
  const setOffset = (/** @type {number} */ to) => setTurned({ key, offset: to });
  const { data, error, loading } = useLoad(
    (signal) =>
      get(query(path, { ...choice, sort: sort.by, descending: sort.descending, offset, limit: PAGE }), signal),
    [key, offset],
  );
  return { data, error, loading, sort, setSort, offset, setOffset };
}

/**
 * The values of the two selects for a cell; by default the false positives.
 * @param {Dialog} dialog @param {CellChoice | null} chosen
 */
function placesOf(dialog, chosen) {
  const others = dialog.classes.filter((label) => label !== dialog.positive);
  const positives = dialog.positive === null ? null : { true: others[0], predicted: dialog.positive };
  const cell = chosen ?? (others.length === 1 ? positives : null);
  /** @param {any} label */
  const place = (label) => {
    const at = dialog.classes.indexOf(label);
    return at < 0 ? ANY : String(at);
  };
  return { truth: place(cell?.true), predicted: chosen?.rejected ? REJECTED : place(cell?.predicted) };
}

/**
 * Two selects for a cell, and the rows in it.
 * @param {{dialog: Dialog, cell: CellChoice | null, settled: boolean}} props
 *   `cell`: the cell that the user asked to see; `settled`: nothing above will move these rows
 */
export function RowsBehind({ dialog, cell, settled }) {
  const [places, setPlaces] = useState(placesOf(dialog, cell));
  const head = useRef(/** @type {HTMLElement | null} */ (null));
  const choice = {
    true: places.truth === ANY ? null : dialog.classes[Number(places.truth)],
    predicted: places.predicted === ANY || places.predicted === REJECTED ? null : dialog.classes[Number(places.predicted)],
    rejected: places.predicted === REJECTED ? true : null,
  };
  const root = `/api/dialogs/${encodeURIComponent(dialog.id)}`;
  const page = useRows(`${root}/rows`, choice, [dialog.position, dialog.steps.length]);
  const rows = /** @type {Rows | null} */ (page.data);
  useEffect(() => {
    if (!cell) return;
    setPlaces(placesOf(dialog, cell));
    head.current?.focus({ preventScroll: true });
  }, [cell]);
  const arrived = useRef(/** @type {CellChoice | null} */ (null));
  useEffect(() => {
    if (!cell || arrived.current === cell) return;
    head.current?.scrollIntoView({ block: 'start' });
    if (settled && rows) arrived.current = cell; // later steps do not scroll here again
  }, [cell, settled, rows !== null]);
  return html`<div class="panel-stack" aria-busy=${page.loading}>
    <h2 ref=${head} tabindex="-1">Rows in a cell</h2>
    <div class="rows-choice">
      <${CellSelects} dialog=${dialog} places=${places} onPlaces=${setPlaces} />
      <${DownloadLink} href=${query(`${root}/rows.csv`, choice)} name="rows.csv">These rows as CSV<//>
    </div>
    <${PageOfRows} page=${page} label="Rows in the cell">
      <${Empty} title="This cell has no rows">Choose another cell above.<//>
    <//>
  </div>`;
}

/**
 * The table of a page of rows, with the buttons to turn pages; the children are shown if there are no rows.
 * @param {{page: ReturnType<typeof useRows>, label: string, changed?: boolean, children: any}} props
 *   `changed`: the rows of a comparison, with two predictions each
 */
export function PageOfRows({ page, label, changed = false, children }) {
  const { error, sort, setSort, offset, setOffset } = page;
  const rows = /** @type {Rows | null} */ (page.data);
  if (error) return html`<${Notice} kind="bad" title="The rows could not be shown">${sentence(error)}<//>`;
  if (!rows) return html`<${Spinner} label="Loading rows" />`;
  if (rows.total === 0) return children;
  return html`<${RowsTable} rows=${rows} sort=${sort} onSort=${setSort} label=${label} changed=${changed} />
    <${Pages} total=${rows.total} offset=${offset} shown=${rows.rows.length} onOffset=${setOffset} />`;
}

/**
 * @param {{dialog: Dialog, places: {truth: string, predicted: string},
 *   onPlaces: (places: {truth: string, predicted: string}) => void}} props
 */
function CellSelects({ dialog, places, onPlaces }) {
  return html`<div class="field">
      <label for="rows-true">True class</label>
      <select
        id="rows-true"
        value=${places.truth}
        onChange=${(/** @type {any} */ event) => onPlaces({ ...places, truth: event.currentTarget.value })}
      >
        <option value=${ANY}>any class</option>
        ${dialog.classes.map((label, place) => html`<option value=${String(place)}>${labelText(label)}</option>`)}
      </select>
    </div>
    <div class="field">
      <label for="rows-predicted">Predicted class</label>
      <select
        id="rows-predicted"
        value=${places.predicted}
        onChange=${(/** @type {any} */ event) => onPlaces({ ...places, predicted: event.currentTarget.value })}
      >
        <option value=${ANY}>any class</option>
        ${dialog.classes.map((label, place) => html`<option value=${String(place)}>${labelText(label)}</option>`)}
        <option value=${REJECTED}>none (rejected)</option>
      </select>
    </div>`;
}

/** @param {{rows: Rows, sort: Sort, onSort: (sort: Sort) => void, label: string, changed: boolean}} props */
function RowsTable({ rows, sort, onSort, label, changed }) {
  /** @param {string} by @param {string} text @param {boolean} [number] */
  const head = (by, text, number = false) => {
    const active = sort.by === by;
    const order = sort.descending ? 'descending' : 'ascending';
    return html`<th scope="col" class=${number ? 'number' : ''} aria-sort=${active ? order : undefined}>
      <button
        type="button"
        class="sort"
        onClick=${() => onSort({ by, descending: active ? !sort.descending : by.startsWith('certainty') })}
      >
        ${text}<span class="sort-mark" aria-hidden="true">${active ? (sort.descending ? '↓' : '↑') : ''}</span>
      </button>
    </th>`;
  };
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${label}>
    <table class="table table-rows">
      <thead>
        <tr>
          ${head('row', 'Row', true)} ${head('true', 'True class')}
          ${changed ? head('before', 'Predicted before') : null}
          ${head('predicted', changed ? 'Predicted now' : 'Predicted class')}
          ${changed ? html`<th scope="col">Result</th>${head('certainty_before', 'Certainty before')}` : null}
          ${head('certainty', changed ? 'Certainty now' : 'Certainty')}
          ${rows.members.map((name) => head(`member:${name}`, name))}
          ${rows.columns.map((name) => head(`column:${name}`, name))}
        </tr>
      </thead>
      <tbody>
        ${rows.rows.map((row) => html`<${OneRow} key=${row.row} row=${row} />`)}
      </tbody>
    </table>
  </div>`;
}

/** A prediction, marked if it is wrong. @param {Row} row @param {Row["predicted"]} predicted */
const prediction = (row, predicted) =>
  html`<td class=${predicted !== null && predicted !== row.true ? 'vote-wrong' : ''}>${labelText(predicted)}</td>`;

/** @param {number} certainty */
const meter = (certainty) =>
  html`<td>
    <span class="meter">
      <span class="meter-track" aria-hidden="true">
        <span class="meter-fill" style=${{ width: `${100 * certainty}%` }}></span>
      </span>
      <span class="number">${percent(certainty, 0)}</span>
    </span>
  </td>`;

/** @param {{row: Row | ChangedRow}} props */
function OneRow({ row }) {
  const now = row.predicted === null ? 'rejected' : row.predicted === row.true ? 'right' : 'wrong';
  return html`<tr>
    <th scope="row" class="number">${count(row.row)}</th>
    <td>${labelText(row.true)}</td>
    ${'before' in row ? prediction(row, row.before) : null} ${prediction(row, row.predicted)}
    ${'before' in row ? html`<td class=${now === 'wrong' ? 'bad' : now === 'right' ? 'good' : ''}>${now}</td>${meter(row.certainty_before)}` : null}
    ${meter(row.certainty)}
    ${row.votes.map((vote) => html`<td class=${vote === row.true ? 'vote' : 'vote vote-wrong'}>${labelText(vote)}</td>`)}
    ${row.values.map((value) => html`<td class="value">${value}</td>`)}
  </tr>`;
}

/** @param {{total: number, offset: number, shown: number, onOffset: (offset: number) => void}} props */
function Pages({ total, offset, shown, onOffset }) {
  return html`<div class="row pages">
    <span class="muted" aria-live="polite">
      ${count(offset + 1)} to ${count(offset + shown)} of ${count(total)}
    </span>
    <button
      type="button"
      class="button button-small"
      disabled=${offset === 0}
      onClick=${() => onOffset(Math.max(0, offset - PAGE))}
    >
      Back
    </button>
    <button
      type="button"
      class="button button-small"
      disabled=${offset + shown >= total}
      onClick=${() => onOffset(offset + PAGE)}
    >
      More
    </button>
  </div>`;
}
