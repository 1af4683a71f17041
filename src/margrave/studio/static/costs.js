// The costs panel: ranges of the cost and the prior, the thresholds that win within them, and the expected cost.
// @ts-check

import { get, query } from './api.js';
import { CostMap, expectedCost, fewWinners, logit, nearestWinner, ratioText, shade } from './costs_map.js';
import { stepOf } from './dialog_state.js';
import { FocusChoice, fpLimit, frontierOf } from './frontier.js';
import { bestFrom, isMember, strategyText } from './frontier_chart.js';
import { count, errorNames, html, nameClass, Notice, percent, plural, rowTotals, sentence, Spinner, useDebounced, useEffect, useLoad, useMemo, useState } from './kit.js';
import { errorsOf } from './matrix_counts.js';

/** @typedef {import('./frontier_chart.js').Point} Point */
/** @typedef {import('./types.js').Frontier} Frontier */
/** @typedef {import('./types.js').Winner} Winner */
/** @typedef {import('./types.js').Winners} Winners */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {[number, number]} Pair */
/** The ranges of the cost ratio and the prior. @typedef {{costs: Pair, priors: Pair}} Ranges */

/** The scale of a value on a slider and in a field. @typedef {{min: number, max: number, step: number, to: (value: number) => number, from: (at: number) => number, least: number, most: number, shown: (value: number) => string, read: (text: string) => number}} Scale */

/** @type {Scale} */
const COST = {
  min: -2,
  max: 2,
  step: 0.02,
  to: Math.log10,
  from: (at) => 10 ** at,
  least: 0.01,
  most: 100,
  shown: (value) => String(Number(value.toPrecision(3))),
  read: Number,
};

/** @type {Scale} */
const PRIOR = {
  min: -7,
  max: 7,
  step: 0.05,
  to: logit,
  from: (at) => 1 / (1 + Math.exp(-at)),
  least: 0.001,
  most: 0.999,
  shown: (value) => String(Number((100 * value).toPrecision(3))),
  read: (text) => Number(text) / 100,
};

/** The most parts of the map, which neighbouring colours tell apart. */
const MOST = 8;

const decimal = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** The best thresholds when costs and priors are only known as ranges. @param {PanelProps} props */
export const CostsPanel = ({ dialog, act, shared }) => html`<div class="panel-stack">
  <div class="panel-head">
    <h2>Costs and priors</h2>
    <p class="muted">
      They are rarely known exactly. Give a range for each, and see which thresholds can have the lowest cost.
    </p>
  </div>
  <${FocusChoice} dialog=${dialog} shared=${shared} />
  <${Loaded} key=${String(shared.focus)} dialog=${dialog} act=${act} label=${shared.focus} shared=${shared} />
</div>`;

/** @param {PanelProps & {label: Label}} props */
function Loaded({ dialog, act, label, shared }) {
  const [ranges, setRanges] = useState(() => usual(dialog, label));
  const rested = useDebounced(ranges, 250);
  const { data, error, loading, reload } = useLoad(
    (signal) => {
      const values = { ...winnersQuery(rested), positive: dialog.classes.length > 2 ? label : null };
      return get(query(`/api/dialogs/${encodeURIComponent(dialog.id)}/winners`, values), signal);
    },
    [dialog.id, dialog.steps.length, rested],
  );
  const winners = /** @type {Winners | null} */ (data);
  if (!winners && error) {
    return html`<${Notice}
      kind="bad"
      title="The winners could not be computed"
      action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
    >
      ${sentence(error)}
    <//>`;
  }
  if (!winners) return html`<${Spinner} label="Comparing costs" />`;
  const others = dialog.classes.filter((other) => other !== label);
  const names = errorNames({ positive: label, negative: others.length === 1 ? others[0] : null });
  return html`<div class="panel-stack" aria-busy=${loading}>
    <div class="ranges">
      <${RangePair}
        id="cost"
        legend="Cost of a false negative"
        unit=""
        hint=${`times that of a false positive; a false negative is ${names.fn}`}
        scale=${COST}
        value=${ranges.costs}
        onValue=${(/** @type {Pair} */ costs) => setRanges({ ...ranges, costs })}
      />
      <${RangePair}
        id="prior"
        legend=${`Expected proportion of ${nameClass(label)}`}
        unit="%"
        hint=${`${percent(winners.prior)} in the tuning set`}
        scale=${PRIOR}
        value=${ranges.priors}
        onValue=${(/** @type {Pair} */ priors) => setRanges({ ...ranges, priors })}
      />
    </div>
    ${error ? html`<${Notice} kind="bad">${sentence(error)}<//>` : null}
    <${Result} dialog=${dialog} act=${act} winners=${winners} label=${label} names=${names} shared=${shared} />
  </div>`;
}

/** The number of rows of a class, and of all others. @param {Dialog} dialog @param {Label} label */
function sizesOf(dialog, label) {
  const totals = rowTotals(dialog.steps[0].after);
  const own = totals[dialog.classes.indexOf(label)];
  return { n_positive: own, n_negative: totals.reduce((sum, n) => sum + n, 0) - own };
}

/**
 * Costs within a factor of ten, and the odds of the tuning set within a factor of two.
 * @param {Dialog} dialog @param {Label} label @returns {Ranges}
 */
function usual(dialog, label) {
  const { n_positive, n_negative } = sizesOf(dialog, label);
  const prior = clamped(n_positive / (n_positive + n_negative), [PRIOR.least, PRIOR.most]);
  return { costs: [0.1, 10], priors: [PRIOR.from(logit(prior) - Math.LN2), PRIOR.from(logit(prior) + Math.LN2)] };
}

/** @param {number} value @param {Pair} range */
const clamped = (value, [low, high]) => Math.min(high, Math.max(low, value));

/** @param {Ranges} ranges */
const winnersQuery = ({ costs, priors }) => ({
  cost_low: costs[0],
  cost_high: costs[1],
  prior_low: priors[0],
  prior_high: priors[1],
});

/** A fraction of a range as a percentage; "<1%" instead of a rounded 0. @param {number} fraction */
const fractionText = (fraction) => (fraction > 0 && fraction < 0.01 ? '<1%' : percent(fraction, 0));

/**
 * Two ends of a range: a slider with two thumbs, and a field for each.
 * @param {{id: string, legend: string, unit: string, hint: string, scale: Scale, value: Pair,
 *   onValue: (value: Pair) => void}} props
 */
function RangePair({ id, legend, unit, hint, scale, value, onValue }) {
  /** @param {0 | 1} end @param {number} to */
  const move = (end, to) => {
    const kept = Math.min(scale.most, Math.max(scale.least, to));
    // An end that is moved past the other end moves it too.
    onValue(end === 0 ? [kept, Math.max(kept, value[1])] : [Math.min(kept, value[0]), kept]);
  };
  const [low, high] = value.map((one) => (scale.to(one) - scale.min) / (scale.max - scale.min));
  return html`<fieldset class="range-pair">
    <legend>${legend}</legend>
    <div class="range-track">
      <span class="range-fill" style=${{ left: `${100 * low}%`, width: `${100 * (high - low)}%` }}></span>
      ${/** @type {const} */ ([0, 1]).map(
        (end) => html`<input
          type="range"
          min=${scale.min}
          max=${scale.max}
          step=${scale.step}
          value=${scale.to(value[end])}
          aria-label=${`${legend}, ${end ? 'at most' : 'at least'}`}
          aria-valuetext=${scale.shown(value[end])}
          onInput=${(/** @type {any} */ event) => move(end, scale.from(Number(event.currentTarget.value)))}
        />`,
      )}
    </div>
    <div class="range-fields">
      <${EndField} id=${`${id}-low`} label=${`${legend}, at least`} scale=${scale} value=${value[0]} onValue=${(/** @type {number} */ to) => move(0, to)} />
      <span>to</span>
      <${EndField} id=${`${id}-high`} label=${`${legend}, at most`} scale=${scale} value=${value[1]} onValue=${(/** @type {number} */ to) => move(1, to)} />
      ${unit ? html`<span>${unit}</span>` : null}
      <span class="muted">${hint}</span>
    </div>
  </fieldset>`;
}

/**
 * A number field that applies its value with Enter, or when it loses the focus.
 * @param {{id: string, label: string, scale: Scale, value: number, onValue: (value: number) => void}} props
 */
function EndField({ id, label, scale, value, onValue }) {
  const shown = scale.shown(value);
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const take = () => {
    if (text === shown) return;
    const read = scale.read(text);
    const valid = text.trim() !== '' && Number.isFinite(read) && read > 0;
    const next = valid ? clamped(read, [scale.least, scale.most]) : value;
    setText(scale.shown(next));
    onValue(next);
  };
  return html`<input
    id=${id}
    class="input-number"
    type="text"
    inputmode="decimal"
    aria-label=${label}
    value=${text}
    onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)}
    onBlur=${take}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && take()}
  />`;
}

/**
 * @param {PanelProps & {winners: Winners, label: Label, names: {fp: string, fn: string}}} props
 */
function Result({ dialog, act, winners, label, names, shared }) {
  const frontier = frontierOf(shared);
  const [hot, setHot] = useState(/** @type {number | null} */ (null));
  const [prior, setPrior] = useState(winners.prior);
  const point = { cost: shared.ratio ?? 1, prior };
  const setPoint = (/** @type {{cost: number, prior: number}} */ to) => {
    setPrior(to.prior);
    if (to.cost !== point.cost) shared.setRatio(Number(to.cost.toPrecision(3)));
  };
  const sizes = sizesOf(dialog, label);
  const { winners: shown, excess } = useMemo(() => fewWinners(winners.winners, sizes, MOST), [winners]);
  const best = useMemo(() => (frontier ? bestFrom(frontier, dialog.position) : []), [frontier, dialog.position]);
  const here = errorsOf((stepOf(dialog, dialog.position) ?? dialog.steps[0]).after, label);
  const nearest = nearestWinner(shown, here, sizes);
  const slopes = [shown[0].low, shown[shown.length - 1].high ?? Infinity];
  /** @param {Winner} winner */
  const fraction = ({ low, high }) => (slopes[1] > slopes[0] ? Math.log((high ?? Infinity) / low) / Math.log(slopes[1] / slopes[0]) : 1);
  useEffect(() => setHot(null), [shown]);
  return html`<${CostMap}
      winners=${{ ...winners, winners: shown }}
      costLabel="cost of a false negative, in false positives"
      priorLabel=${`proportion of ${nameClass(label)}`}
      here=${{ place: nearest, step: dialog.position }}
      point=${point}
      onPoint=${setPoint}
      hot=${hot}
      onHot=${setHot}
    />
    <${Expected} dialog=${dialog} reached=${best} label=${label} sizes=${sizes} here=${here} point=${point} onPoint=${setPoint} />
    <p>
      ${shown.length === 1
        ? 'One threshold has the lowest cost everywhere in these ranges.'
        : `${plural(winners.winners.length, 'threshold')} have the lowest cost somewhere in these ranges; any other costs more everywhere.`}
      ${excess > 0
        ? ` The map shows ${count(shown.length)} of them; the best of these costs at most ${percent(excess)} more than the best of all.`
        : ''}
    </p>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Winners">
      <table class="table table-tight">
        <thead>
          <tr>
            <th scope="col"><span class="hidden">Number in the map</span></th>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
            <th scope="col">Strategy</th>
            <th scope="col" class="wide-only">Wins in</th>
            <th scope="col"><span class="hidden">Apply</span></th>
          </tr>
        </thead>
        <tbody onMouseLeave=${() => setHot(null)}>
          ${shown.map(
            (winner, place) => html`<tr
              class=${hot === place ? 'row-hot' : ''}
              onMouseEnter=${() => setHot(place)}
              onFocusin=${() => setHot(place)}
            >
              <td>
                <span class="cost-key">
                  <span class="key key-side" style=${{ background: shade(place) }}></span>${place + 1}
                </span>
              </td>
              <td class="number">${count(winner.fp)}</td>
              <td class="number">${count(winner.fn)}</td>
              <td>
                ${strategyText(winner.name)}
                ${place === nearest
                  ? html`<br /><span class="muted small">nearest to step ${dialog.position}</span>`
                  : null}
              </td>
              <td class="wide-only">
                <span class="meter">
                  <span class="meter-track" aria-hidden="true">
                    <span class="meter-fill" style=${{ width: `${100 * fraction(winner)}%` }}></span>
                  </span>
                  <span class="number">${fractionText(fraction(winner))}</span>
                </span>
              </td>
              <td class="number">
                <button
                  type="button"
                  class="button-quiet button-small"
                  disabled=${act.busy || !best.length}
                  aria-label=${`Apply: at most ${count(winner.fp)} ${names.fp}`}
                  onClick=${() => act.prefer([fpLimit(dialog, label, winner.fp)], { keep: false })}
                >
                  Apply
                </button>
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="muted small">
      <span class="wide-only">
        “Wins in” is the fraction of the range of slopes from ${ratioText(slopes[0])} to ${ratioText(slopes[1])}, on a
        logarithmic scale.
      </span>
      ${shown.some((winner) => isMember(winner.name))
        ? ' Single members are shown for comparison: a request moves the decision of the committee, which may have a few more false negatives.'
        : ''}
    </p>`;
}

/**
 * The point with the lowest expected cost.
 * @param {Point[]} points @param {import('./costs_map.js').Sizes} sizes @param {{cost: number, prior: number}} point
 */
function lowestCost(points, sizes, { cost, prior }) {
  const costs = points.map((one) => expectedCost(one, sizes, cost, prior));
  return points[costs.reduce((best, one, place) => (one < costs[best] ? place : best), 0)];
}

/**
 * The expected cost of the current step and of the best threshold, for one cost and one prior.
 * @param {{dialog: Dialog, reached: Point[], label: Label, sizes: import('./costs_map.js').Sizes,
 *   here: {fp: number, fn: number}, point: {cost: number, prior: number},
 *   onPoint: (point: {cost: number, prior: number}) => void}} props
 */
function Expected({ dialog, reached, label, sizes, here, point, onPoint }) {
  const best = reached.length ? lowestCost(reached, sizes, point) : null;
  /** Per 1,000 rows, as text. @param {{fp: number, fn: number}} one */
  const shown = (one) => decimal.format(1000 * expectedCost(one, sizes, point.cost, point.prior));
  const name = nameClass(label);
  return html`<section class="expected" aria-label="Expected cost">
    <div class="ask-words">
      <label for="point-cost">If a false negative costs</label>
      <${EndField} id="point-cost" label="Cost of a false negative" scale=${COST} value=${point.cost} onValue=${(/** @type {number} */ cost) => onPoint({ ...point, cost })} />
      <span>false positives, and</span>
      <${EndField} id="point-prior" label=${`Proportion of ${name}, in percent`} scale=${PRIOR} value=${point.prior} onValue=${(/** @type {number} */ prior) => onPoint({ ...point, prior })} />
      <span>% of the rows are ${name}:</span>
    </div>
    <dl aria-live="polite">
      <div>
        <dt>Current step</dt>
        <dd>${shown(here)}<small>step ${dialog.position}: ${count(here.fp)} false positives, ${count(here.fn)} false negatives</small></dd>
      </div>
      <div>
        <dt>Best threshold</dt>
        <dd>
          ${best ? html`${shown(best)}<small>${best.name}: ${count(best.fp)} false positives, ${count(best.fn)} false negatives</small>` : '–'}
        </dd>
      </div>
    </dl>
    <p class="muted small">
      Expected cost per 1,000 rows, in units of one false positive: 1,000 × ((1 − p) × false positive rate + p × c ×
      false negative rate), for the proportion p and the cost c of a false negative. A rejected row costs nothing here.
      Click the map to choose c and p.
    </p>
  </section>`;
}
