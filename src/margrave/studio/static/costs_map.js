// A map of the winning thresholds by cost and prior: its borders are straight lines of equal slope.
// @ts-check

import { useWidth } from './charts.js';
import { html, percent } from './kit.js';

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

/** The colour of a winner, from few false alarms to few misses. @param {number} place @param {number} n */
export const shade = (place, n) =>
  `color-mix(in srgb, var(--accent) ${Math.round(8 + (72 * place) / Math.max(1, n - 1))}%, var(--surface))`;

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
export function regions(winners, ground) {
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
 * The map of the ranges; `hot` is the highlighted winner.
 * @param {{winners: Winners, costLabel: string, priorLabel: string, hot: number | null,
 *   onHot: (place: number | null) => void}} props
 */
export function CostMap({ winners, costLabel, priorLabel, hot, onHot }) {
  const [place, width] = useWidth();
  return html`<div class="cost-map" ref=${place}>
    ${width > 2 * LEFT
      ? html`<${Drawn} winners=${winners} costLabel=${costLabel} priorLabel=${priorLabel} hot=${hot} onHot=${onHot} width=${width} />`
      : null}
  </div>`;
}

/**
 * @param {{winners: Winners, costLabel: string, priorLabel: string, hot: number | null,
 *   onHot: (place: number | null) => void, width: number}} props
 */
function Drawn({ winners, costLabel, priorLabel, hot, onHot, width }) {
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
  const shapes = regions(won, ground);
  return html`<svg
    width=${width}
    height=${HEIGHT}
    viewBox=${`0 0 ${width} ${HEIGHT}`}
    role="img"
    aria-label=${`${won.length} thresholds win somewhere; the table below lists them.`}
  >
    ${shapes.map((corners, at) =>
      corners.length < 3
        ? null
        : html`<path
            class=${hot === at ? 'map-part map-hot' : 'map-part'}
            d=${`M${corners.map(([u, v]) => `${px(u).toFixed(1)} ${py(v).toFixed(1)}`).join('L')}Z`}
            style=${{ fill: shade(at, won.length) }}
            onMouseEnter=${() => onHot(at)}
            onMouseLeave=${() => onHot(null)}
          />`,
    )}
    ${hot !== null && shapes[hot]?.length > 2
      ? html`<path
          class="map-edge"
          d=${`M${shapes[hot].map(([u, v]) => `${px(u).toFixed(1)} ${py(v).toFixed(1)}`).join('L')}Z`}
        />`
      : null}
    ${inside(known) && !one(priors)
      ? html`<line class="map-known" x1=${px(0)} x2=${px(1)} y1=${py(known)} y2=${py(known)} />
          <text class="map-note" x=${px(1) - 6} y=${py(known) + (known > 0.5 ? 14 : -6)}>as in the tuning set</text>`
      : null}
    <rect class="map-frame" x=${px(0)} y=${py(1)} width=${wide} height=${high} />
    ${thinned(costTicks, 34).map(({ at, text }) => html`<text class="map-tick" x=${at} y=${py(0) + 16}>${text}</text>`)}
    ${thinned(priorTicks, 18).map(({ at, text }) => html`<text class="map-tick map-side" x=${LEFT - 7} y=${at + 4}>${text}</text>`)}
    <text class="map-title" x=${px(0.5)} y=${HEIGHT - 6}>${costLabel}</text>
    <text class="map-title" transform=${`translate(12 ${py(0.5)}) rotate(-90)`}>${priorLabel}</text>
  </svg>`;
}
