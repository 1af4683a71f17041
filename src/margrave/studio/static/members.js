// The members panel: the errors and the disagreement of several members, the margins, and the rows in a cell.
// @ts-check

import { get } from './api.js';
import { axis, Chart, tooltip } from './charts.js';
import { count, html, Notice, percent, plural, rate, sentence, Spinner, tint, useCallback, useLoad } from './kit.js';
import { RowsBehind } from './rows.js';

/** @typedef {import('./types.js').Members} Members */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {import('./charts.js').Colours} Colours */

/** The members, and the rows in a cell. @param {PanelProps} props */
export function MembersPanel({ dialog, act }) {
  const { data, error, loading, reload } = useLoad(
    (signal) => get(`/api/dialogs/${encodeURIComponent(dialog.id)}/members`, signal),
    [dialog.id, dialog.position, dialog.steps.length],
  );
  const members = /** @type {Members | null} */ (data);
  const several = dialog.members.length > 1;
  return html`<div class="panel-stack" aria-busy=${loading}>
    ${error && !members
      ? html`<${Notice}
          kind="bad"
          title="The members could not be shown"
          action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
        >
          ${sentence(error)}
        <//>`
      : null}
    ${!error && !members ? html`<${Spinner} label="Loading the members" />` : null}
    ${members
      ? html`${several ? html`<${Weights} dialog=${dialog} members=${members} />` : null}
          <${Margins} margins=${members.margins} />
          ${several
            ? html`<${Split} members=${members} /><${Disagreement} members=${members} />`
            : null}`
      : null}
    ${dialog.read_only
      ? null
      : html`<section class="panel-part">
          <${RowsBehind} dialog=${dialog} cell=${act.cell} settled=${!loading} />
        </section>`}
  </div>`;
}

/** What the weights mean. */
const WEIGHTS = 'A logistic regression on the members’ log-odds gives these weights; a member with a negative weight corrects the others';

/** @param {{dialog: Dialog, members: Members}} props */
function Weights({ dialog, members: data }) {
  const members = data.members;
  const heaviest = Math.max(...members.map((member) => Math.abs(member.weight)), 1e-9);
  const all = members.reduce((sum, member) => sum + Math.abs(member.weight), 0) || 1;
  const alarms = members.some((member) => member.fp !== null);
  return html`<section class="panel-part">
    <h2>The members</h2>
    <p class="muted">${WEIGHTS}. The errors are those of each member alone, on the
      ${plural(dialog.n, 'row')} of the tuning set${alarms ? '; fp are false positives, fn false negatives' : ''}.</p>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Members">
      <table class="table table-tight">
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Weight</th>
            <th scope="col" class="number">Errors</th>
            ${alarms
              ? html`<th scope="col" class="number">fp<span class="hidden"> (false positives)</span></th>
                  <th scope="col" class="number">fn<span class="hidden"> (false negatives)</span></th>`
              : null}
          </tr>
        </thead>
        <tbody>
          ${members.map(
            (member) => html`<tr>
              <th scope="row" class="name">${member.name}</th>
              <td>
                <span class="meter">
                  <span class="meter-track" aria-hidden="true">
                    <span class="meter-fill" style=${{ width: `${(100 * Math.abs(member.weight)) / heaviest}%` }}></span>
                  </span>
                  <span class="number">${percent(member.weight / all, 0)}</span>
                </span>
              </td>
              <td class="number">${count(member.n_errors)} <span class="muted">${percent(1 - member.accuracy, 1)}</span></td>
              ${alarms
                ? html`<td class="number">${member.fp === null ? '–' : count(member.fp)}</td>
                    <td class="number">${member.fn === null ? '–' : count(member.fn)}</td>`
                : null}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** @param {number} edge */
const edgeText = (edge) => String(Number(edge.toPrecision(2)));

/** @param {Colours} c @param {Members["margins"]} margins */
function marginsOption(c, { edges, right, wrong }) {
  /** @param {number} place */
  const between = (place) => `${edgeText(edges[place])} to ${edgeText(edges[place + 1])}`;
  const bars = { type: 'bar', stack: 'all', barCategoryGap: '8%' };
  return {
    grid: { left: 52, right: 12, top: 12, bottom: 42, outerBoundsMode: 'none' },
    tooltip: tooltip(c, ({ dataIndex }) =>
      [
        `margin ${between(dataIndex)}`,
        `${count(right[dataIndex])} predicted right`,
        `${count(wrong[dataIndex])} predicted wrong`,
      ].join('\n'),
    ),
    xAxis: axis(c, 'margin of the prediction, in the score', 26, {
      type: 'category',
      data: edges.slice(0, -1).map(edgeText),
      splitLine: { show: false },
      axisLabel: { interval: Math.ceil(right.length / 8) - 1 },
    }),
    yAxis: axis(c, 'rows', 36),
    series: [
      { ...bars, id: 'wrong', name: 'wrong', data: wrong, itemStyle: { color: c.bad } },
      { ...bars, id: 'right', name: 'right', data: right, itemStyle: { color: c.accent, opacity: 0.55 } },
    ],
  };
}

/** @param {{margins: Members["margins"]}} props */
function Margins({ margins }) {
  const option = useCallback((/** @type {Colours} */ c) => marginsOption(c, margins), [margins]);
  const right = margins.right.reduce((sum, n) => sum + n, 0);
  const wrong = margins.wrong.reduce((sum, n) => sum + n, 0);
  return html`<section class="panel-part">
    <h3>Margins of the predictions</h3>
    <${Chart}
      option=${option}
      label=${`Margins of ${count(right)} rows predicted right and ${count(wrong)} predicted wrong, in ${margins.right.length} bins.`}
    />
    <ul class="legend">
      <li><span class="key key-right"></span>predicted right, ${count(right)}</li>
      <li><span class="key key-wrong"></span>predicted wrong, ${count(wrong)}</li>
    </ul>
  </section>`;
}

/** @param {{members: Members}} props */
function Split({ members }) {
  const { n_by_votes, wrong_by_votes } = members;
  const most = Math.max(...n_by_votes, 1);
  const lines = n_by_votes.map((n, votes) => ({ votes, n, wrong: wrong_by_votes[votes] })).reverse();
  return html`<section class="panel-part">
    <h3>Members that agree with the prediction</h3>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Votes">
      <table class="table table-tight">
        <thead>
          <tr>
            <th scope="col">Agree</th>
            <th scope="col" class="wide"><span class="hidden">Right and wrong, as bars</span></th>
            <th scope="col" class="number">Rows</th>
            <th scope="col" class="number">Wrong</th>
          </tr>
        </thead>
        <tbody>
          ${lines.map(({ votes, n, wrong }) => {
            return html`<tr>
              <th scope="row" class="name">${votes} of ${members.members.length}</th>
              <td class="wide">
                <span class="meter-track meter-two" aria-hidden="true">
                  <span class="meter-fill meter-wrong" style=${{ width: `${(100 * wrong) / most}%` }}></span>
                  <span class="meter-fill meter-right" style=${{ width: `${(100 * (n - wrong)) / most}%` }}></span>
                </span>
              </td>
              <td class="number">${count(n)}</td>
              <td class="number">${count(wrong)} <span class="muted">${rate(wrong, n)}</span></td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** @param {{members: Members}} props */
function Disagreement({ members: { members, disagreement: fractions } }) {
  const names = members.map((member) => member.name);
  const most = Math.max(...fractions.flat(), 1e-9);
  return html`<section class="panel-part">
    <h3>Where the members disagree</h3>
    <p class="muted">
      The fraction of rows for which two members predict different classes. Members with similar errors add little.
    </p>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Disagreement of members">
      <table class="heat">
        <thead>
          <tr>
            <td></td>
            ${names.map((name) => html`<th scope="col">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${names.map(
            (name, row) => html`<tr>
              <th scope="row">${name}</th>
              ${names.map((_, column) =>
                row === column
                  ? html`<td class="heat-same">–</td>`
                  : html`<td style=${{ '--tint': tint(fractions[row][column] / most) }}>
                      ${percent(fractions[row][column], 1)}
                    </td>`,
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}
