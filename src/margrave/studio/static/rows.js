// The rows in a cell of the matrix: sortable, page by page, with the vote of every member.
// @ts-check

import { get, query } from './api.js';
import { count, DownloadLink, Empty, html, labelText, Notice, percent, sentence, Spinner, useEffect, useLoad, useState } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').CellChoice} CellChoice */
/** @typedef {import('./types.js').Rows} Rows */
/** @typedef {import('./types.js').Row} Row */
/** @typedef {{by: string, descending: boolean}} Sort */

const PAGE = 25;
const ANY = 'any';
const REJECTED = 'rejected';

/**
 * The values of the two selects for a cell; by default the false alarms.
 * @param {Dialog} dialog @param {CellChoice | null} chosen
 */
function placesOf(dialog, chosen) {
  const others = dialog.classes.filter((label) => label !== dialog.positive);
  const alarms = dialog.positive === null ? null : { true: others[0], predicted: dialog.positive };
  const cell = chosen ?? (others.length === 1 ? alarms : null);
  /** @param {any} label */
  const place = (label) => {
    const at = dialog.classes.indexOf(label);
    return at < 0 ? ANY : String(at);
  };
  return { truth: place(cell?.true), predicted: chosen?.rejected ? REJECTED : place(cell?.predicted) };
}

/**
 * Two selects for a cell, and the rows in it.
 * @param {{dialog: Dialog, cell: CellChoice | null}} props
 */
export function RowsBehind({ dialog, cell }) {
  const [places, setPlaces] = useState(placesOf(dialog, cell));
  const [sort, setSort] = useState(/** @type {Sort} */ ({ by: 'certainty', descending: true }));
  const [offset, setOffset] = useState(0);
  useEffect(() => {
    if (cell) setPlaces(placesOf(dialog, cell));
  }, [cell]);
  useEffect(() => setOffset(0), [places, sort, dialog.position]);

  const choice = {
    true: places.truth === ANY ? null : dialog.classes[Number(places.truth)],
    predicted: places.predicted === ANY || places.predicted === REJECTED ? null : dialog.classes[Number(places.predicted)],
    rejected: places.predicted === REJECTED ? true : null,
  };
  const root = `/api/dialogs/${encodeURIComponent(dialog.id)}`;
  const { data, error, loading } = useLoad(
    (signal) =>
      get(query(`${root}/rows`, { ...choice, sort: sort.by, descending: sort.descending, offset, limit: PAGE }), signal),
    [dialog.id, dialog.position, dialog.steps.length, places, sort, offset],
  );
  const rows = /** @type {Rows | null} */ (data);
  return html`<div class="panel-stack" aria-busy=${loading}>
    <h2>Rows in a cell</h2>
    <div class="rows-choice">
      <${CellSelects} dialog=${dialog} places=${places} onPlaces=${setPlaces} />
      <${DownloadLink} href=${query(`${root}/rows.csv`, choice)} name="rows.csv">These rows as CSV<//>
    </div>
    ${error ? html`<${Notice} kind="bad" title="The rows could not be shown">${sentence(error)}<//>` : null}
    ${!rows && !error ? html`<${Spinner} label="Loading rows" />` : null}
    ${rows && rows.total === 0
      ? html`<${Empty} title="This cell has no rows">Choose another cell above.<//>`
      : null}
    ${rows && rows.total > 0
      ? html`<${RowsTable} rows=${rows} sort=${sort} onSort=${setSort} />
          <${Pages} total=${rows.total} offset=${offset} shown=${rows.rows.length} onOffset=${setOffset} />`
      : null}
  </div>`;
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

/** @param {{rows: Rows, sort: Sort, onSort: (sort: Sort) => void}} props */
function RowsTable({ rows, sort, onSort }) {
  /** @param {string} by @param {string} text @param {boolean} [number] */
  const head = (by, text, number = false) => {
    const active = sort.by === by;
    const order = sort.descending ? 'descending' : 'ascending';
    return html`<th scope="col" class=${number ? 'number' : ''} aria-sort=${active ? order : undefined}>
      <button
        type="button"
        class="sort"
        onClick=${() => onSort({ by, descending: active ? !sort.descending : by === 'certainty' })}
      >
        ${text}<span class="sort-mark" aria-hidden="true">${active ? (sort.descending ? '↓' : '↑') : ''}</span>
      </button>
    </th>`;
  };
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Rows in the cell">
    <table class="table table-rows">
      <thead>
        <tr>
          ${head('row', 'Row', true)}
          <th scope="col">True class</th>
          <th scope="col">Predicted class</th>
          ${head('certainty', 'Certainty')}
          ${rows.members.map((name) => head(`member:${name}`, name))}
          ${rows.columns.map((name) => head(name, name))}
        </tr>
      </thead>
      <tbody>
        ${rows.rows.map((row) => html`<${OneRow} key=${row.row} row=${row} />`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{row: Row}} props */
function OneRow({ row }) {
  const wrong = row.predicted !== row.true;
  return html`<tr>
    <th scope="row" class="number">${count(row.row)}</th>
    <td>${labelText(row.true)}</td>
    <td class=${wrong ? 'vote-wrong' : ''}>${labelText(row.predicted)}</td>
    <td>
      <span class="meter">
        <span class="meter-track" aria-hidden="true">
          <span class="meter-fill" style=${{ width: `${100 * row.certainty}%` }}></span>
        </span>
        <span class="number">${percent(row.certainty, 0)}</span>
      </span>
    </td>
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
