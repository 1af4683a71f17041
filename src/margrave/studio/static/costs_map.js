// A map of the winning thresholds by cost and prior: its borders are straight lines of equal slope.
// @ts-check

import { useWidth } from './charts.js';
import { html, percent, plural } from './kit.js';

/** @typedef {import('./types.js').Winners} Winners */
/** @typedef {[number, number]} Pair */
/** The corners of the map in logarithms: of the cost ratio, and of the odds of the prior. @typedef {{x: Pair, y: Pair}} Ground */

const LEFT = 62;
const BOTTOM = 44;
const TOP = 10;
const RIGHT = 12;
const HEIGHT = 260;
const COSTS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const PRIORS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

/** The logarithm of the odds. @param {number} p */
export const logit = (p) => Math.log(p / (1 - p));

/** A ratio with few digits: 0.05, 1.5, 20. @param {number} ratio */
export const ratioText = (ratio) => String(Number(ratio.toPrecision(2)));

/** The colour of a winner: neighbours differ in lightness, for readers who confuse hues. @param {number} place */
export const shade = (place) => `var(--map-${place % 8})`;

/** The number of rows of the class, and of all others. @typedef {{n_positive: number, n_negative: number}} Sizes */

/**
 * The expected cost of a row, in false positives: (1 − prior) × fp rate + prior × cost × fn rate.
 * @param {{fp: number, fn: number}} point @param {Sizes} sizes @param {number} cost of a false negative
 * @param {number} prior the expected proportion of the class
 */
export const expectedCost = ({ fp, fn }, { n_positive, n_negative }, cost, prior) =>
  ((1 - prior) * fp) / n_negative + (prior * cost * fn) / n_positive;

/**
 * The index of the winner at a slope, prior × cost / (1 − prior).
 * @param {Winners["winners"]} winners @param {number} slope
 */
function winnerAt(winners, slope) {
  const found = winners.findIndex(({ high }) => high === null || slope <= high);
  return found < 0 ? winners.length - 1 : found;
}

/**
 * The index of the winner in whose range a point costs least, compared with the winner.
 * @param {Winners["winners"]} winners @param {{fp: number, fn: number}} point @param {Sizes} sizes
 */
export function nearestWinner(winners, point, { n_positive, n_negative }) {
  const ratios = winners.map((winner) => {
    const slope = Math.sqrt(winner.low * (winner.high ?? winner.low));
    /** @param {{fp: number, fn: number}} one */
    const at = ({ fp, fn }) => fp / n_negative + (slope * fn) / n_positive;
    return at(point) === at(winner) ? 1 : at(point) / at(winner);
  });
  return ratios.indexOf(Math.min(...ratios));
}

/**
 * A few of the winners that do nearly as well as all: one by one, leave out the one whose neighbours replace it
 * best. `excess` is how much more they cost than all winners, at the worst slope, as a fraction.
 * @param {Winners["winners"]} winners @param {Sizes} sizes @param {number} most
 */
export function fewWinners(winners, { n_positive, n_negative }, most) {
  const kept = [...winners];
  const last = winners[winners.length - 1];
  /** @param {{fp: number, fn: number}} one @param {number} slope */
  const cost = ({ fp, fn }, slope) => fp / n_negative + (slope * fn) / n_positive;
  /** @param {{fp: number, fn: number}} one @param {number} slope */
  const over = (one, slope) => cost(one, slope) / cost(winners[winnerAt(winners, slope)], slope) - 1;
  /** The slope at which two winners cost the same. @param {{fp: number, fn: number}} a @param {{fp: number, fn: number}} b */
  const even = (a, b) => ((b.fp - a.fp) * n_positive) / ((a.fn - b.fn) * n_negative);
  let excess = 0;
  while (kept.length > most) {
    const losses = kept.map((_, place) => {
      const [before, after] = [kept[place - 1], kept[place + 1]];
      if (!before) return over(after, winners[0].low);
      return after ? over(before, even(before, after)) : over(before, last.high ?? last.low);
    });
    const least = Math.min(...losses);
    kept.splice(losses.indexOf(least), 1);
    excess = Math.max(excess, least);
  }
  const ranged = kept.map((one, place) => ({
    ...one,
    low: place ? even(kept[place - 1], one) : winners[0].low,
    high: place < kept.length - 1 ? even(one, kept[place + 1]) : last.high,
  }));
  return { winners: ranged, excess };
}

/**
 * The part of the unit square where `at` is not negative; `at` is linear.
 * @param {Pair[]} corners @param {(point: Pair) => number} at @returns {Pair[]}
 */
function clipped(corners, at) {
  /** @type {Pair[]} */
  const kept = [];
  corners.forEach((point, place) => {
    const next = corners[(place + 1) % corners.length];
    const [here, there] = [at(point), at(next)];
    if (here >= 0) kept.push(point);
    if (here * there < 0) {
      const t = here / (here - there);
      kept.push([point[0] + t * (next[0] - point[0]), point[1] + t * (next[1] - point[1])]);
    }
  });
  return kept;
}

/**
 * Where each winner wins, as polygons in the unit square: log cost + log odds lies between the
 * logarithms of its slopes.
 * @param {Winners["winners"]} winners @param {Ground} ground @returns {Pair[][]}
 */
function regions(winners, ground) {
  const { x, y } = ground;
  /** @param {Pair} point */
  const slope = ([u, v]) => x[0] + u * (x[1] - x[0]) + y[0] + v * (y[1] - y[0]);
  /** @type {Pair[]} */
  const square = [[0, 0], [1, 0], [1, 1], [0, 1]];
  return winners.map((winner, place) => {
    const low = place === 0 ? -Infinity : Math.log(winner.low);
    const high = place === winners.length - 1 || winner.high === null ? Infinity : Math.log(winner.high);
    let corners = square;
    if (low > -Infinity) corners = clipped(corners, (point) => slope(point) - low);
    if (high < Infinity) corners = clipped(corners, (point) => high - slope(point));
    return corners;
  });
}

/** Ticks inside a range, at least `apart` pixels from each other. @param {{at: number, text: string}[]} ticks @param {number} apart */
function thinned(ticks, apart) {
  let last = -Infinity;
  return ticks.filter(({ at }) => {
    const kept = Math.abs(at - last) >= apart;
    if (kept) last = at;
    return kept;
  });
}

/**
 * Where to write in a polygon: its middle at the first of some heights at which it is wide enough, or widest.
 * @param {Pair[]} corners @param {number[]} heights
 */
function placeFor(corners, heights) {
  const found = heights.map((y) => {
    const across = corners.flatMap(([a, b], place) => {
      const [u, v] = corners[(place + 1) % corners.length];
      return b <= y !== v <= y ? [a + ((y - b) / (v - b)) * (u - a)] : [];
    });
    const width = across.length ? Math.max(...across) - Math.min(...across) : 0;
    return { x: (Math.max(...across) + Math.min(...across)) / 2, y, width };
  });
  const widest = Math.max(...found.map(({ width }) => width));
  return found.find(({ width }) => width > 24 || width === widest) ?? found[0];
}

/**
 * `here` is the current step and the winner nearest to it, `hot` the highlighted one, `point` the chosen cost and prior.
 * @typedef {{winners: Winners, costLabel: string, priorLabel: string, here: {place: number, step: number},
 *   point: {cost: number, prior: number}, onPoint: (point: {cost: number, prior: number}) => void,
 *   hot: number | null, onHot: (place: number | null) => void}} MapProps
 */

/** The map of the ranges. @param {MapProps} props */
export function CostMap(props) {
  const [place, width] = useWidth();
  return html`<div class="cost-map" ref=${place}>
    ${width > 2 * LEFT ? html`<${Drawn} ...${props} width=${width} />` : null}
  </div>`;
}

/** @param {MapProps & {width: number}} props */
function Drawn({ winners, costLabel, priorLabel, here, point, onPoint, hot, onHot, width }) {
  const { costs, priors, winners: won, prior } = winners;
  /** @type {Ground} */
  const ground = { x: [Math.log(costs[0]), Math.log(costs[1])], y: [logit(priors[0]), logit(priors[1])] };
  const wide = width - LEFT - RIGHT;
  const high = HEIGHT - TOP - BOTTOM;
  /** @param {number} u */
  const px = (u) => LEFT + u * wide;
  /** @param {number} v */
  const py = (v) => TOP + (1 - v) * high;
  /** @param {Pair} range @param {number} value */
  const along = (range, value) => (range[1] > range[0] ? (value - range[0]) / (range[1] - range[0]) : 0.5);
  /** @param {number} t */
  const inside = (t) => t >= -1e-9 && t <= 1 + 1e-9;
  const one = (/** @type {Pair} */ range) => range[0] === range[1];
  const costTicks = (one(costs) ? [costs[0]] : COSTS)
    .map((cost) => ({ at: along(ground.x, Math.log(cost)), text: ratioText(cost) }))
    .filter(({ at }) => inside(at))
    .map(({ at, text }) => ({ at: px(at), text }));
  const priorTicks = (one(priors) ? [priors[0]] : PRIORS)
    .map((value) => ({ at: along(ground.y, logit(value)), text: percent(value) }))
    .filter(({ at }) => inside(at))
    .map(({ at, text }) => ({ at: py(at), text }));
  const known = along(ground.y, logit(prior));
  /** @param {number} value @param {Pair} range */
  const within = (value, [low, high]) => value > 0.999 * low && value < 1.001 * high;
  const shapes = regions(won, ground).map((corners) => corners.map(([u, v]) => /** @type {Pair} */ ([px(u), py(v)])));
  /** @param {Pair[]} corners */
  const path = (corners) => `M${corners.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}Z`;
  /** @param {MouseEvent} event */
  const choose = (event) => {
    const box = /** @type {SVGElement} */ (event.currentTarget).getBoundingClientRect();
    const u = Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / wide));
    const v = Math.min(1, Math.max(0, 1 - (event.clientY - box.top - TOP) / high));
    const odds = ground.y[0] + v * (ground.y[1] - ground.y[0]);
    onPoint({ cost: Math.exp(ground.x[0] + u * (ground.x[1] - ground.x[0])), prior: 1 / (1 + Math.exp(-odds)) });
  };
  return html`<svg
    width=${width}
    height=${HEIGHT}
    viewBox=${`0 0 ${width} ${HEIGHT}`}
    class="map-area"
    role="img"
    onClick=${choose}
    aria-label=${`${plural(won.length, 'threshold')} by cost and proportion; the table below lists them.`}
  >
    ${shapes.map((corners, at) =>
      corners.length < 3
        ? null
        : html`<path
            class=${hot === at ? 'map-part map-hot' : 'map-part'}
            d=${path(corners)}
            style=${{ fill: shade(at) }}
            onMouseEnter=${() => onHot(at)}
            onMouseLeave=${() => onHot(null)}
          />`,
    )}
    ${hot !== null && shapes[hot]?.length > 2
      ? html`<path class="map-edge" d=${path(shapes[hot])} />`
      : null}
    ${inside(known) && !one(priors)
      ? html`<line class="map-known" x1=${px(0)} x2=${px(1)} y1=${py(known)} y2=${py(known)} />
          <text class="map-note" x=${px(1) - 6} y=${py(known) + (known > 0.5 ? 14 : -6)}>as in the tuning set</text>`
      : null}
    ${shapes.map((corners, at) => {
      const { x, y, width: room } = placeFor(corners, [0.85, 0.7, 0.15, 0.3].map(py));
      return room > 14 ? html`<text class="map-number" x=${x} y=${y + 4}>${at + 1}</text>` : null;
    })}
    ${shapes[here.place].length > 2 ? html`<${Here} corners=${shapes[here.place]} y=${py(0.3)} middle=${px(0.5)} step=${here.step} />` : null}
    ${within(point.cost, costs) && within(point.prior, priors)
      ? html`<circle
          class="map-point"
          cx=${px(along(ground.x, Math.log(point.cost)))}
          cy=${py(along(ground.y, logit(point.prior)))}
          r="6"
        />`
      : null}
    <rect class="map-frame" x=${px(0)} y=${py(1)} width=${wide} height=${high} />
    ${thinned(costTicks, 34).map(({ at, text }) => html`<text class="map-tick" x=${at} y=${py(0) + 16}>${text}</text>`)}
    ${thinned(priorTicks, 18).map(({ at, text }) => html`<text class="map-tick map-side" x=${LEFT - 7} y=${at + 4}>${text}</text>`)}
    <text class="map-title" x=${px(0.5)} y=${HEIGHT - 6}>${costLabel}</text>
    <text class="map-title" transform=${`translate(12 ${py(0.5)}) rotate(-90)`}>${priorLabel}</text>
  </svg>`;
}

/**
 * Where to mark a part of the map: at a wanted height, between it and a corner, or in the middle.
 * @param {Pair[]} corners @param {number} wanted
 */
export function placeNear(corners, wanted) {
  const heights = corners.map((one) => one[1]);
  const middle = (Math.min(...heights) + Math.max(...heights)) / 2;
  return placeFor(corners, [wanted, ...heights.map((one) => (one + wanted) / 2), middle]);
}

/**
 * The current step, in the part of the winner nearest to it.
 * @param {{corners: Pair[], y: number, middle: number, step: number}} props
 */
function Here({ corners, y: wanted, middle, step }) {
  const { x, y } = placeNear(corners, wanted);
  const left = x > middle;
  return html`<circle class="map-step" cx=${x} cy=${y} r="10" />
    <text class="map-step-number" x=${x} y=${y + 4}>${step}</text>
    <text class=${left ? 'map-here map-end' : 'map-here map-start'} x=${x + (left ? -15 : 15)} y=${y + 4}>nearest to step ${step}</text>`;
}
