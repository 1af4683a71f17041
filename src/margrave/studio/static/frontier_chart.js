// The frontier as a plot: the staircases of all strategies, the best of them, and the dialog's steps on it.
// @ts-check

import { axis, tooltip } from './charts.js';
import { count, nameClass, predictedText, rate } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** A step as a point of the plane. @typedef {{step: number, parent: number | null, fp: number, fn: number, met: boolean}} Visited */
/** @typedef {import('./types.js').Frontier & {trajectory: Visited[]}} Frontier */
/** @typedef {import('./charts.js').Colours} Colours */
/** @typedef {{fp: number, fn: number, name: string}} Point */
/** @typedef {"whole" | "steps" | "here"} Zoom */
/** The steps at one point. @typedef {{steps: Visited[], fp: number, fn: number}} StepPoint */

const MEMBER = 'member ';

/** Whether a curve belongs to a single member, which is only shown for comparison. @param {string} name */
export const isMember = (name) => name.startsWith(MEMBER);

/** A strategy in words. @param {string} name */
export function strategyText(name) {
  if (isMember(name)) return `${name.slice(MEMBER.length)} alone`;
  return name;
}

/** The two kinds of errors in words: "nonspam predicted spam". @param {Frontier} frontier */
export function mistakes(frontier) {
  const { positive, negative } = frontier;
  const others = negative === null ? 'others' : nameClass(negative);
  return {
    fp: `${others} ${predictedText(positive)}`,
    fn: `${nameClass(positive)} predicted ${negative === null ? 'another class' : others}`,
  };
}

/** "12 of 2,230 nonspam predicted spam". @param {Frontier} frontier @param {number} fp */
export const alarmsText = (frontier, fp) =>
  `${count(fp)} of ${count(frontier.n_negative)} ${mistakes(frontier).fp}`;

/** "462 of 1,450 spam predicted nonspam". @param {Frontier} frontier @param {number} fn */
export const missesText = (frontier, fn) =>
  `${count(fn)} of ${count(frontier.n_positive)} ${mistakes(frontier).fn}`;

/**
 * The index in `best` with the most false positives within a limit.
 * @param {Point[]} best @param {number} limit
 */
export function within(best, limit) {
  let found = 0;
  for (let place = 0; place < best.length && best[place].fp <= limit; place += 1) found = place;
  return found;
}

/** The steps of a dialog as points of the plane. @param {Dialog} dialog @returns {Visited[]} */
export const visited = (dialog) =>
  dialog.steps.map(({ number, parent, fp, fn, met }) => ({ step: number, parent, fp: fp ?? 0, fn: fn ?? 0, met }));

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

/**
 * The ends of an axis on its ticks, or at the last sample. @param {number} from @param {number} to
 * @param {number} all
 */
function ends(from, to, all) {
  const rough = Math.max(1, (to - from) / 5);
  const power = 10 ** Math.floor(Math.log10(rough));
  const interval = power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
  const max = Math.min(all, Math.ceil(to / interval) * interval);
  return {
    min: Math.floor(from / interval) * interval,
    max,
    interval,
    axisLabel: { showMaxLabel: max % interval === 0 },
  };
}

/**
 * The part of the plane that is shown.
 * @param {Frontier} frontier @param {Zoom} zoom @param {number} position
 */
function range(frontier, zoom, position) {
  const whole = { x: frontier.n_negative, y: frontier.n_positive };
  /** @param {[number, number]} x @param {[number, number]} y */
  const shown = (x, y) => ({ x: ends(...x, whole.x), y: ends(...y, whole.y) });
  const steps = frontier.trajectory;
  const here = steps.find((step) => step.step === position) ?? steps[0];
  if (zoom === 'whole' || !here) return shown([0, whole.x], [0, whole.y]);
  /** @param {number} most @param {number} all */
  const upTo = (most, all) => Math.max(1.08 * most, 0.02 * all, 5);
  if (zoom === 'steps') {
    const x = upTo(Math.max(...steps.map((step) => step.fp)), whole.x);
    return shown([0, x], [0, upTo(Math.max(...steps.map((step) => step.fn)), whole.y)]);
  }
  /** @param {number} at @param {number} all @returns {[number, number]} */
  const around = (at, all) => {
    const reach = Math.max(4, 0.5 * at, 0.005 * all);
    return [Math.max(0, at - reach), at + reach];
  };
  return shown(around(here.fp, whole.x), around(here.fn, whole.y));
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
    `${alarmsText(frontier, fp)} (${rate(fp, frontier.n_negative)})`,
    `${missesText(frontier, fn)} (${rate(fn, frontier.n_positive)})`,
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
 * The option of the chart.
 * @param {Colours} c @param {Frontier} frontier @param {Zoom} zoom @param {number} position
 * @param {Point} chosen @param {(step: number) => string} title
 */
export function frontierOption(c, frontier, zoom, position, chosen, title) {
  const shown = range(frontier, zoom, position);
  const points = stepPoints(frontier);
  const names = mistakes(frontier);
  const best = pairs(
    frontier.best.map((point) => point.fp),
    frontier.best.map((point) => point.fn),
  );
  const stairs = { type: 'line', step: 'end', symbol: 'none', silent: true, animation: false };
  return {
    grid: { left: 58, right: 20, top: 12, bottom: 46, outerBoundsMode: 'none' },
    tooltip: tooltip(c, (params) => tooltipText(frontier, points, title, params)),
    xAxis: axis(c, `${names.fp}, of ${count(frontier.n_negative)}`, 28, shown.x),
    yAxis: axis(c, `${names.fn}, of ${count(frontier.n_positive)}`, 42, shown.y),
    series: [
      ...frontier.curves.map((curve, place) => ({
        ...stairs,
        id: `strategy-${place}`,
        data: pairs(curve.fp, curve.fn),
        lineStyle: { color: c.muted, width: 1, opacity: 0.4 },
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
        markLine: {
          silent: true,
          symbol: 'none',
          animation: false,
          label: { show: false },
          lineStyle: { color: c.accent, type: 'dashed', width: 1 },
          data: [{ xAxis: chosen.fp }, { yAxis: chosen.fn }],
        },
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
