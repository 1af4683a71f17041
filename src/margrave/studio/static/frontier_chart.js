// The frontier as a plot: the staircases of all strategies, the best of them, and the dialog's steps on it.
// @ts-check

import { axis, tooltip } from './charts.js';
import { count, errorNames, nameClass, predictedText, rate } from './kit.js';
import { errorsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Label} Label */
/** A step as a point of the plane. @typedef {{step: number, parent: number | null, fp: number, fn: number, met: boolean}} Visited */
/** @typedef {import('./charts.js').Colours} Colours */
/** @typedef {import('./charts.js').View} View */
/** @typedef {{fp: number, fn: number, name: string}} Point */
/**
 * A frontier for the chart of a step: `best` and `hull` have only what a request from this step tries.
 * @typedef {Omit<import('./types.js').Frontier, "hull"> & {hull: Point[], trajectory: Visited[]}} Frontier
 */
/** @typedef {"whole" | "steps" | "here"} Part */
/** The steps at one point. @typedef {{steps: Visited[], fp: number, fn: number}} StepPoint */

const CURVE = 'curve-';

const MEMBER = 'member ';

/** Whether a curve belongs to a single member, which is only shown for comparison. @param {string} name */
export const isMember = (name) => name.startsWith(MEMBER);

/** A strategy in words. @param {string} name */
export function strategyText(name) {
  if (isMember(name)) return `${name.slice(MEMBER.length)} alone`;
  return name;
}

/** The id of the series of a curve. @param {number} place */
export const curveId = (place) => `${CURVE}${place}`;

/** "12 of 2,230 nonspam predicted spam". @param {Frontier} frontier @param {number} fp */
export const fpText = (frontier, fp) => `${count(fp)} of ${count(frontier.n_negative)} ${errorNames(frontier).fp}`;

/** "462 of 1,450 spam predicted nonspam". @param {Frontier} frontier @param {number} fn */
export const fnText = (frontier, fn) => `${count(fn)} of ${count(frontier.n_positive)} ${errorNames(frontier).fn}`;

/**
 * The last of `n` increasing values that is at most a limit, by its index; 0 if there is none.
 * @param {number} n @param {(place: number) => number} value @param {number} limit
 */
function lastWithin(n, value, limit) {
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (value(middle) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * The index in `best` with the most false positives within a limit.
 * @param {Point[]} best @param {number} limit
 */
export const within = (best, limit) => lastWithin(best.length, (place) => best[place].fp, limit);

/**
 * The curve within 8 pixels of a point of the plane, for the pixels of one unit of each axis; null if there is none.
 * @param {Frontier} frontier @param {number} x @param {number} y @param {[number, number]} scale
 */
export function curveNear(frontier, x, y, scale) {
  let [nearest, least] = [-1, 8];
  frontier.curves.forEach(({ fp, fn }, place) => {
    const at = lastWithin(fp.length, (one) => fp[one], x);
    const next = Math.min(at + 1, fp.length - 1);
    // A stair: flat from its first point, then down to the next one.
    const flat = Math.hypot(Math.max(0, fp[at] - x) * scale[0], (fn[at] - y) * scale[1]);
    const down = Math.hypot((fp[next] - x) * scale[0], Math.max(0, fn[next] - y, y - fn[at]) * scale[1]);
    const away = Math.min(flat, down);
    if (away < least) [nearest, least] = [place, away];
  });
  return nearest < 0 ? null : { series: curveId(nearest), name: strategyText(frontier.curves[nearest].name) };
}

/** The steps of a dialog as points of the plane of a class. @param {Dialog} dialog @param {Label} label @returns {Visited[]} */
export const visited = (dialog, label) =>
  dialog.steps.map(({ number, parent, met, after }) => ({ step: number, parent, met, ...errorsOf(after, label) }));

/**
 * The best points of the curves that a request from a step tries, without the one that predicts the class for all rows.
 * @param {import('./types.js').Frontier} frontier @param {number} step
 */
export function bestFrom({ curves, n_negative }, step) {
  const tried = curves.filter(({ steps }) => steps.includes(step));
  // The curves may be older than the step, until they are loaded again.
  const points = (tried.length ? tried : curves.filter(({ name }) => !isMember(name)))
    .flatMap(({ name, fp, fn }) => fp.map((n, place) => ({ name, fp: n, fn: fn[place] })))
    .filter(({ fp }) => fp < n_negative)
    .sort((a, b) => a.fp - b.fp || a.fn - b.fn);
  /** @type {Point[]} */
  const best = [];
  for (const point of points) if (!best.length || point.fn < best[best.length - 1].fn) best.push(point);
  return best;
}

/** The corners of the lower convex hull of the best points: those with the lowest cost for some costs. @param {Point[]} best */
export function hullOf(best) {
  /** @type {Point[]} */
  const kept = [];
  for (const point of best) {
    while (kept.length > 1) {
      const [a, b] = kept.slice(-2);
      if ((b.fp - a.fp) * (point.fn - a.fn) > (b.fn - a.fn) * (point.fp - a.fp)) break; // a turn to the left
      kept.pop();
    }
    kept.push(point);
  }
  return kept;
}

/** The steps grouped by their point, in their order. @param {Frontier} frontier @returns {StepPoint[]} */
export function stepPoints(frontier) {
  /** @type {Map<string, StepPoint>} */
  const points = new Map();
  for (const step of frontier.trajectory) {
    const key = `${step.fp} ${step.fn}`;
    const point = points.get(key) ?? { steps: [], fp: step.fp, fn: step.fn };
    point.steps.push(step);
    points.set(key, point);
  }
  return [...points.values()];
}

/** A round number near a fifth of a span. @param {number} span */
function interval(span) {
  const rough = Math.max(1, span / 5);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
}

/**
 * A part of the plane, up to a round number on each axis.
 * @param {Frontier} frontier @param {Part} part @param {number} position @returns {View}
 */
export function viewOf(frontier, part, position) {
  const { n_negative: allX, n_positive: allY, trajectory: steps } = frontier;
  const here = steps.find((step) => step.step === position) ?? steps[0];
  if (part === 'whole' || !here) return { x: [0, allX], y: [0, allY] };
  /** @param {number} most @param {number} all @returns {[number, number]} */
  const upTo = (most, all) => {
    const end = Math.max(most, 0.02 * all, 5);
    return [0, Math.min(all, Math.ceil(end / interval(end)) * interval(end))];
  };
  if (part === 'here') return { x: upTo(3 * here.fp, allX), y: upTo(3 * here.fn, allY) };
  return {
    x: upTo(1.08 * Math.max(...steps.map((step) => step.fp)), allX),
    y: upTo(1.08 * Math.max(...steps.map((step) => step.fn)), allY),
  };
}

/** @param {View} view @param {{fp: number, fn: number}} point */
export const inView = ({ x, y }, { fp, fn }) => fp >= x[0] && fp <= x[1] && fn >= y[0] && fn <= y[1];

/**
 * A range made larger or smaller by a factor around a value, within 0 and `all`.
 * @param {[number, number]} range @param {number} factor @param {number} at @param {number} all @returns {[number, number]}
 */
export function scaled([low, high], factor, at, all) {
  const span = Math.min(all, Math.max(Math.min(5, all), (high - low) * factor));
  const centre = Math.min(high, Math.max(low, at));
  const start = Math.min(all - span, Math.max(0, centre - (span * (centre - low)) / (high - low)));
  return [start, start + span];
}

/** @param {number[]} fp @param {number[]} fn */
const pairs = (fp, fn) => fp.map((x, place) => [x, fn[place]]);

/** @param {Colours} c @param {StepPoint} point @param {number} position */
function mark(c, point, position) {
  const met = point.steps.every((step) => step.met);
  const here = point.steps.some((step) => step.step === position);
  const colour = here ? c.accent : c.ink;
  const text = point.steps.map((step) => step.step).join(' ');
  return {
    value: [point.fp, point.fn],
    symbol: text.length > 2 ? 'roundRect' : 'circle',
    symbolSize: [Math.max(20, 8 + 7 * text.length), 20].map((size) => (here ? size + 4 : size)),
    itemStyle: {
      opacity: 1,
      color: met ? colour : c.surface,
      borderColor: met ? c.surface : colour,
      borderWidth: met ? 1.5 : 2,
    },
    label: { show: true, formatter: text, color: met ? c.surface : colour },
  };
}

/** Arrows from each step's parent to it. @param {Frontier} frontier */
function arrows(frontier) {
  const found = [];
  for (const step of frontier.trajectory) {
    const parent = frontier.trajectory.find((other) => other.step === step.parent);
    if (parent && (parent.fp !== step.fp || parent.fn !== step.fn)) {
      found.push([{ coord: [parent.fp, parent.fn] }, { coord: [step.fp, step.fn] }]);
    }
  }
  return found;
}

/**
 * The text of a tooltip.
 * @param {Frontier} frontier @param {StepPoint[]} points @param {(step: number) => string} title
 * @param {any} params
 */
function tooltipText(frontier, points, title, params) {
  const [fp, fn] = params.value;
  const lines = [
    `${fpText(frontier, fp)} (${rate(fp, frontier.n_negative)})`,
    `${fnText(frontier, fn)} (${rate(fn, frontier.n_positive)})`,
  ];
  if (params.seriesId === 'steps') {
    const steps = points[params.dataIndex].steps.map((step) => {
      const met = step.met ? '' : ', not met';
      return `Step ${step.step}: ${title(step.step)}${met}`;
    });
    return [...steps, ...lines].join('\n');
  }
  const shown = params.seriesId === 'hull' ? frontier.hull : frontier.best;
  return [...lines, strategyText(shown[params.dataIndex].name)].join('\n');
}

/**
 * The label of a tick: the end of an axis that is zoomed has none, unless it is a round number.
 * @param {() => [number, number]} range
 */
const tickText = (range) => (/** @type {number} */ value) => {
  const [low, high] = range();
  const round = 10 ** Math.floor(Math.log10(Math.max(1, (high - low) / 5)));
  return Math.abs(value / round - Math.round(value / round)) < 1e-6 ? count(value) : '';
};

/**
 * The option of the chart. `view` returns the part that is shown, which changes while the user zooms.
 * @param {Colours} c @param {number} width @param {Frontier} frontier @param {() => View} view
 * @param {number} position @param {(step: number) => string} title
 */
export function frontierOption(c, width, frontier, view, position, title) {
  const points = stepPoints(frontier);
  const names = errorNames(frontier);
  const best = pairs(
    frontier.best.map((point) => point.fp),
    frontier.best.map((point) => point.fn),
  );
  const stairs = { type: 'line', step: 'end', symbol: 'none', silent: true, animation: false };
  const left = 52;
  /**
   * An axis with its title beside its end, where a narrow chart has room for it.
   * @param {'x' | 'y'} name @param {string} text @param {number} all @param {number} gap @param {any} style
   */
  const side = (name, text, all, gap, style) => ({
    ...axis(c, `${text}, of ${count(all)}`, gap, {
      min: 0,
      max: all,
      minInterval: 1,
      nameTruncate: { maxWidth: width - 28, ellipsis: '…' },
      axisLabel: { formatter: tickText(() => view()[name]) },
    }),
    nameLocation: 'end',
    nameTextStyle: { color: c.muted, fontSize: 12, fontFamily: c.font, ...style },
  });
  /** The title of an axis; a narrow chart has no room for the classes. @param {string} errors @param {string} classes */
  const axisText = (errors, classes) => (width < 420 ? errors : `${errors}: ${classes}`);
  /** @param {'x' | 'y'} name */
  const zoom = (name) => ({
    id: name,
    type: 'inside',
    [`${name}AxisIndex`]: 0,
    filterMode: 'none',
    startValue: view()[name][0],
    endValue: view()[name][1],
    minValueSpan: 5,
    zoomOnMouseWheel: 'ctrl', // the wheel alone scrolls the page
    moveOnMouseWheel: false,
    throttle: 30,
  });
  return {
    grid: { left, right: 20, top: 32, bottom: 46, outerBoundsMode: 'none' },
    tooltip: tooltip(c, (params) => tooltipText(frontier, points, title, params)),
    dataZoom: [zoom('x'), zoom('y')],
    xAxis: side('x', axisText('false positives', names.fp), frontier.n_negative, 0, {
      align: 'right',
      verticalAlign: 'top',
      padding: [26, 0, 0, 0],
    }),
    yAxis: side('y', axisText('false negatives', names.fn), frontier.n_positive, 10, {
      align: 'left',
      padding: [0, 0, 0, 8 - left],
    }),
    series: [
      ...frontier.curves.map((curve, place) => ({
        ...stairs,
        id: curveId(place),
        data: pairs(curve.fp, curve.fn),
        lineStyle: { color: c.muted, width: 1, opacity: 0.4 },
        emphasis: { lineStyle: { color: c.ink, width: 2.5, opacity: 1 } },
        z: 2,
      })),
      { ...stairs, id: 'lowest', data: best, lineStyle: { color: c.accent, width: 2 }, z: 3 },
      {
        id: 'best',
        type: 'scatter',
        data: best,
        symbolSize: 5,
        itemStyle: { color: c.accent },
        emphasis: { scale: 2 },
        z: 4,
      },
      {
        id: 'hull',
        type: 'scatter',
        data: pairs(
          frontier.hull.map((point) => point.fp),
          frontier.hull.map((point) => point.fn),
        ),
        symbol: 'diamond',
        symbolSize: 9,
        itemStyle: { color: c.surface, borderColor: c.accent, borderWidth: 1.5, opacity: 1 },
        z: 5,
      },
      {
        id: 'steps',
        type: 'scatter',
        data: points.map((point) => mark(c, point, position)),
        label: { fontSize: 11, fontWeight: 600, fontFamily: c.font },
        z: 7,
        markLine: {
          silent: true,
          symbol: ['none', 'arrow'],
          symbolSize: 8,
          symbolOffset: [0, [0, 13]],
          animation: false,
          label: { show: false },
          lineStyle: { color: c.ink, type: 'solid', width: 1.25, opacity: 0.75 },
          data: arrows(frontier),
        },
      },
    ],
  };
}

/** A field of a CSV file; a text that a spreadsheet would take for a formula is escaped. @param {string | number} value */
function csvField(value) {
  const runs = typeof value === 'string' && /^([\t\r\n]|[\s\0]*[=+\-@＝＋－＠])/.test(value);
  const text = runs ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * All points of the chart as CSV, each with its name.
 * @param {Frontier} frontier @param {(step: number) => string} title
 */
export function frontierCsv(frontier, title) {
  const rows = [
    ['kind', 'name', 'false positives', 'false negatives'],
    ...frontier.curves.flatMap((curve) =>
      curve.fp.map((fp, place) => ['strategy', strategyText(curve.name), fp, curve.fn[place]]),
    ),
    ...frontier.best.map(({ name, fp, fn }) => ['best', strategyText(name), fp, fn]),
    ...frontier.trajectory.map(({ step, fp, fn }) => [`step ${step}`, title(step), fp, fn]),
  ];
  return rows.map((row) => `${row.map(csvField).join(',')}\r\n`).join('');
}
