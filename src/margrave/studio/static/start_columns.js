// The chosen table: its first rows, and its columns with their kinds.
// @ts-check

import { Notice, Tag, count, html, plural } from './kit.js';

/** @typedef {import('./start_steer.js').Change} Change */
/** @typedef {import('./start_steer.js').Choices} Choices */
/** @typedef {import('./types.js').Finding} Finding */
/** @typedef {import('./types.js').Table} Table */

/** The first rows of the table. @param {{table: Table}} props */
export function Preview({ table }) {
  return html`<div class="scroll-x preview" tabindex="0" role="region" aria-label="First rows of the table">
    <table class="table">
      <thead>
        <tr>
          ${table.preview.columns.map((name) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${table.preview.rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell) => html`<td>${cell === '' ? html`<span class="muted">–</span>` : cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** What a finding means, and the button that uses it. */
const ADVICE = /** @type {const} */ ({
  entity: ['If these rows belong together, keep them so: otherwise the guarantee does not hold for new ones.', 'Keep together'],
  identifier: ['It says nothing about new rows.', 'Leave out'],
  time: ['If the model will predict later rows, certify it on the latest.', 'Use as time'],
});

/**
 * Columns that should probably not be ordinary features, each with a button; none that already has another role.
 * @param {{findings: Finding[], choices: Choices, change: Change, toggle: (name: string) => void}} props
 */
export function Findings({ findings, choices: { drop, group, time }, change, toggle }) {
  const open = findings.filter(
    ({ column, kind }) =>
      ![...drop, group, time].includes(column) && (kind === 'identifier' || !(kind === 'time' ? time : group)),
  );
  const firstTime = open.find(({ kind }) => kind === 'time');
  return open
    .filter((one) => one.kind !== 'time' || one === firstTime)
    .map(({ column, kind, reason }) => {
      const [meaning, label] = ADVICE[kind];
      const use = {
        entity: () => change({ group: column }),
        identifier: () => toggle(column),
        time: () => change({ time: column }),
      }[kind];
      const button = html`<button type="button" class="button button-small" onClick=${use}>${label}</button>`;
      return html`<${Notice} key=${column} kind=${kind === 'entity' ? 'warn' : 'info'} action=${button}>
        ${reason}. ${meaning}
      <//>`;
    });
}

/** The kinds of columns that carry no information about new rows. */
const IGNORED = ['identifier', 'constant', 'empty'];

/**
 * The columns, with a check box for each that can be used.
 * @param {{table: Table, target: string, drop: string[], roles: Record<string, string>,
 *   toggle: (name: string) => void}} props  `roles`: columns with another role
 */
export function Columns({ table, target, drop, roles, toggle }) {
  const used = table.columns.filter(
    ({ name, kind }) => name !== target && !drop.includes(name) && !IGNORED.includes(kind),
  ).length;
  const ignored = table.columns.filter(({ name, kind }) => name !== target && IGNORED.includes(kind));
  return html`<details class="columns">
    <summary>
      Columns: ${count(used)} of ${count(table.columns.length - (target ? 1 : 0))} used${
        ignored.length ? `; ignored: ${ignored.map(({ name, kind }) => `${name} (${kind})`).join(', ')}` : ''
      }
    </summary>
    <div class="scroll-x columns-list" tabindex="0" role="region" aria-label="Columns">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Use</th>
            <th scope="col">Column</th>
            <th scope="col">Kind</th>
            <th scope="col">Examples</th>
            <th scope="col" class="number">Missing</th>
          </tr>
        </thead>
        <tbody>
          ${table.columns.map((column) => {
            const role = column.name === target ? 'target' : roles[column.name];
            return html`<tr key=${column.name}>
              <td>
                ${
                  role
                    ? html`<${Tag}>${role}<//>`
                    : html`<input
                      type="checkbox"
                      aria-label=${`Use ${column.name}`}
                      checked=${!drop.includes(column.name)}
                      onChange=${() => toggle(column.name)}
                    />`
                }
              </td>
              <td class="columns-name">${column.name}</td>
              <td>${column.kind}<br /><span class="muted small">${column.why}</span></td>
              <td class="columns-examples">
                ${column.examples.join(', ')}<br /><span class="muted small">${plural(column.distinct, 'value')}</span>
              </td>
              <td class="number">${column.missing ? count(column.missing) : '–'}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  </details>`;
}
