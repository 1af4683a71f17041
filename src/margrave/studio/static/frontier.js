// The frontier panel: all reachable trade-offs, the steps so far, and a form to request a point.
// @ts-check

import { get } from './api.js';
import { Chart } from './charts.js';
import { stepOf } from './dialog_state.js';
import { alarmsText, frontierOption, isMember, missesText, mistakes, stepPoints, strategyText, visited, within } from './frontier_chart.js';
import { count, Empty, html, Notice, plural, rate, sentence, Spinner, useCallback, useEffect, useLoad, useMemo, useState } from './kit.js';

/** @typedef {import('./frontier_chart.js').Frontier} Frontier */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {import('./frontier_chart.js').Zoom} Zoom */

/** @type {{name: Zoom, text: string}[]} */
const ZOOMS = [
  { name: 'steps', text: 'All steps' },
  { name: 'here', text: 'Near this step' },
  { name: 'whole', text: 'Everything' },
];

/** The part of the plot that a dialog shows, which lasts while another tab is open. @type {Map<string, Zoom>} */
const zooms = new Map();

/** The reachable trade-offs. @param {PanelProps} props */
export const FrontierPanel = ({ dialog, act }) =>
  dialog.positive === null
    ? html`<${NoPositive} dialog=${dialog} />`
    : html`<${Loaded} dialog=${dialog} act=${act} />`;

/** @param {PanelProps} props */
function Loaded({ dialog, act }) {
  const { data, error, loading, reload } = useLoad(
    (signal) => get(`/api/dialogs/${encodeURIComponent(dialog.id)}/frontier`, signal),
    [dialog.id, dialog.steps.length],
  );
  const frontier = useMemo(
    () => (data ? /** @type {Frontier} */ ({ ...data, trajectory: visited(dialog) }) : null),
    [data, dialog.steps],
  );
  if (error && !frontier) {
    return html`<${Notice}
      kind="bad"
      title="The frontier could not be drawn"
      action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
    >
      ${sentence(error)}
    <//>`;
  }
  if (!frontier) return html`<${Spinner} label="Computing the frontier" />`;
  return html`<${Drawn}
    dialog=${dialog}
    act=${act}
    frontier=${frontier}
    loading=${loading}
  />`;
}

/** Without a positive class there are no false alarms and misses. @param {{dialog: Dialog}} props */
export function NoPositive({ dialog }) {
  const classes = dialog.classes.map(String).join(', ');
  return html`<${Empty}
    title="This view needs a positive class"
    action=${dialog.table
      ? html`<a class="button" href=${`#/new/${encodeURIComponent(dialog.table.id)}`}>
          Start again with a positive class
        </a>`
      : null}
  >
    This dialog has ${dialog.classes.length} classes (${classes}) and no positive class. False alarms and misses are
    defined for one class against all others.
  <//>`;
}

/**
 * @param {{dialog: Dialog, act: Act, frontier: Frontier, loading: boolean}} props
 */
function Drawn({ dialog, act, frontier, loading }) {
  const here = stepOf(dialog, dialog.position);
  const [zoom, setZoom] = useState(zooms.get(dialog.id) ?? /** @type {Zoom} */ ('steps'));
  useEffect(() => void zooms.set(dialog.id, zoom), [dialog.id, zoom]);
  const [limit, setLimit] = useState(here?.fp ?? 0);
  useEffect(() => setLimit(here?.fp ?? 0), [dialog.position]);
  const chosen = frontier.best[within(frontier.best, limit)];
  const option = useCallback(
    (/** @type {any} */ colours) =>
      frontierOption(colours, frontier, zoom, dialog.position, chosen, (step) => titleOf(dialog, step)),
    [frontier, zoom, dialog.position, chosen, dialog.steps],
  );

  /** @param {string} series @param {number} index */
  const pick = (series, index) => {
    if (series !== 'steps') return false;
    const others = stepPoints(frontier)[index].steps.filter((step) => step.step !== dialog.position);
    if (others.length && !act.busy) act.goto(others[others.length - 1].step);
    return true;
  };
  /** @param {number} x */
  const plot = (x) => setLimit(frontier.best[within(frontier.best, x + 0.5)].fp);

  return html`<div class="panel-stack" aria-busy=${loading}>
    <div class="panel-head">
      <h2>Reachable trade-offs</h2>
      <${ZoomChoice} zoom=${zoom} onZoom=${setZoom} />
      <p class="muted">All thresholds of all strategies. Click the point you want; lower and further left is better.</p>
    </div>
    <${Chart}
      option=${option}
      label=${describeChart(frontier, dialog.position)}
      tall=${true}
      onPick=${pick}
      onPlot=${plot}
    />
    <${Legend} />
    <${AskBar} frontier=${frontier} limit=${limit} onLimit=${setLimit} act=${act} />
    ${dialog.steps.some((step) => step.after.counts.some((row) => row[row.length - 1] > 0))
      ? html`<p class="muted">
          The lines show decisions that reject nothing. A step that rejects some rows may lie below them.
        </p>`
      : null}
    <${Tables} frontier=${frontier} dialog=${dialog} act=${act} />
  </div>`;
}

/** The request or the strategy of a step. @param {Dialog} dialog @param {number} number */
function titleOf(dialog, number) {
  const step = stepOf(dialog, number);
  return step?.preference ?? step?.note ?? (number === 0 ? 'the start' : (step?.strategy ?? ''));
}

/** The chart in words, for screen readers. @param {Frontier} frontier @param {number} position */
function describeChart(frontier, position) {
  const names = mistakes(frontier);
  const at = frontier.trajectory.find((step) => step.step === position);
  const current = at ? ` Step ${position} is at ${count(at.fp)} and ${count(at.fn)}.` : '';
  return `${names.fp} against ${names.fn}: ${plural(frontier.best.length, 'best trade-off')} of ${plural(frontier.curves.length, 'strategy', 'strategies')}.${current}`;
}

/** @param {{zoom: Zoom, onZoom: (zoom: Zoom) => void}} props */
function ZoomChoice({ zoom, onZoom }) {
  return html`<div class="switch" role="group" aria-label="Part of the plot">
    ${ZOOMS.map(
      ({ name, text }) => html`<button
        type="button"
        aria-pressed=${zoom === name}
        onClick=${() => onZoom(name)}
      >
        ${text}
      </button>`,
    )}
  </div>`;
}

const Legend = () =>
  html`<ul class="legend" aria-hidden="true">
    <li><span class="key key-best"></span>the best</li>
    <li><span class="key key-strategy"></span>each strategy</li>
    <li><span class="key key-hull"></span>lowest cost for some costs</li>
    <li><span class="key key-step">1</span>step</li>
    <li><span class="key key-step key-unmet">2</span>not met</li>
    <li><span class="key key-step key-here">3</span>current step</li>
  </ul>`;

/**
 * The limit as a number and a slider, the smallest number of misses, and the button to request it.
 * @param {{frontier: Frontier, limit: number, onLimit: (limit: number) => void, act: Act}} props
 */
function AskBar({ frontier, limit, onLimit, act }) {
  const { best } = frontier;
  const place = within(best, limit);
  const point = best[place];
  const own = committee(frontier, limit);
  const cost = `${missesText(frontier, point.fn)} (${rate(point.fn, frontier.n_positive)})`;
  /** @param {any} event */
  const type = (event) => {
    const typed = Math.round(Number(event.currentTarget.value));
    if (event.currentTarget.value !== '' && Number.isFinite(typed)) {
      onLimit(Math.min(frontier.n_negative, Math.max(0, typed)));
    }
  };
  /** @param {any} event */
  const slide = (event) => onLimit(best[Number(event.currentTarget.value)].fp);
  /** @param {Event} event */
  const ask = (event) => {
    event.preventDefault();
    act.prefer([`fp <= ${limit}`], { keep: false });
  };
  return html`<form class="ask-bar" onSubmit=${ask}>
    <div class="ask-words">
      <label for="frontier-limit">At most</label>
      <input
        id="frontier-limit"
        class="input-number"
        type="number"
        min="0"
        max=${frontier.n_negative}
        step="1"
        value=${limit}
        onInput=${type}
      />
      <span>of ${count(frontier.n_negative)} ${mistakes(frontier).fp}</span>
      <span class="muted">${rate(limit, frontier.n_negative)}</span>
    </div>
    <input
      type="range"
      class="slider"
      min="0"
      max=${best.length - 1}
      step="1"
      value=${place}
      aria-label="Point of the frontier"
      aria-valuetext=${`At most ${alarmsText(frontier, point.fp)}, at least ${cost}`}
      onInput=${slide}
    />
    <div class="ask-result">
      <p aria-live="polite">
        causes at least <strong>${cost}</strong>
        <span class="muted">, strategy: ${strategyText(point.name)}</span>
        ${isMember(point.name) && own !== null
          ? html`<br /><span class="muted">
                Single members are shown for comparison. A request moves the decision of the committee, which
                reaches${' '}${count(own)} so far.
              </span>`
          : null}
      </p>
      <button type="submit" class="button-primary" disabled=${act.busy}>Ask for it</button>
    </div>
  </form>`;
}

/** The smallest number of misses of the strategies that a request tries. @param {Frontier} frontier @param {number} limit */
function committee(frontier, limit) {
  const found = frontier.curves
    .filter((curve) => !isMember(curve.name))
    .map((curve) => Math.min(...curve.fn.filter((_, place) => curve.fp[place] <= limit)));
  const least = Math.min(...found);
  return Number.isFinite(least) ? least : null;
}

/**
 * The same as tables: the steps, with a button to go to each, and the best trade-offs.
 * @param {{frontier: Frontier, dialog: Dialog, act: Act}} props
 */
function Tables({ frontier, dialog, act }) {
  const names = mistakes(frontier);
  return html`<details class="fold">
    <summary>As tables</summary>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Steps">
      <table class="table">
        <caption>
          Steps of the dialog
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">Step</th>
            <th scope="col">Requested</th>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
            <th scope="col"><span class="hidden">Revisit</span></th>
          </tr>
        </thead>
        <tbody>
          ${frontier.trajectory.map(
            (step) => html`<tr>
              <th scope="row" class="number">${step.step}</th>
              <td>${titleOf(dialog, step.step)}${step.met ? '' : ' (not met)'}</td>
              <td class="number">${count(step.fp)}</td>
              <td class="number">${count(step.fn)}</td>
              <td>
                ${step.step === dialog.position
                  ? 'current step'
                  : html`<button
                      type="button"
                      class="button-quiet button-small"
                      disabled=${act.busy}
                      aria-label=${`Revisit step ${step.step}`}
                      onClick=${() => act.goto(step.step)}
                    >
                      Revisit
                    </button>`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <div class="scroll-both" tabindex="0" role="region" aria-label="Best trade-offs">
      <table class="table">
        <caption>
          Best trade-offs
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
            <th scope="col">Strategy</th>
          </tr>
        </thead>
        <tbody>
          ${frontier.best.map(
            (point) => html`<tr>
              <td class="number">
                ${count(point.fp)} <span class="muted">${rate(point.fp, frontier.n_negative)}</span>
              </td>
              <td class="number">
                ${count(point.fn)} <span class="muted">${rate(point.fn, frontier.n_positive)}</span>
              </td>
              <td>${strategyText(point.name)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}
