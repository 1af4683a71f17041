// Charts with ECharts, which is loaded for the first chart, in the colours of the theme.
// @ts-check

import { html, Notice, Spinner, token, useEffect, useLayoutEffect, useReducedMotion, useRef, useState, useTheme } from './kit.js';

/**
 * The colours of charts in the current theme.
 * @typedef {{paper: string, surface: string, raised: string, ink: string, muted: string,
 *   line: string, accent: string, good: string, bad: string, warn: string, font: string}} Colours
 */

/**
 * The used part of an ECharts instance.
 * @typedef {{setOption: (option: any, settings?: any) => void, resize: () => void,
 *   dispose: () => void, on: (event: string, handler: (params: any) => void) => void,
 *   getZr: () => any, convertFromPixel: (finder: any, pixel: number[]) => number[],
 *   containPixel: (finder: any, pixel: number[]) => boolean}} Instance
 */

const SOURCE = './vendor/echarts.js';

/** @type {Promise<{init: (place: HTMLElement) => Instance}> | null} */
let library = null;

/** Load ECharts once; a failed load can be repeated. */
function echarts() {
  library ??= import(SOURCE).then(
    () => /** @type {any} */ (globalThis).echarts,
    (problem) => {
      library = null;
      throw problem;
    },
  );
  return library;
}

/**
 * A ref to an element, and its current width; 0 before it is known.
 * @returns {[import('./kit_core.js').Ref<HTMLDivElement | null>, number]}
 */
export function useWidth() {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [place, width];
}

/** @returns {Colours} */
const colours = () => ({
  paper: token('--paper'),
  surface: token('--surface'),
  raised: token('--raised'),
  ink: token('--ink'),
  muted: token('--muted'),
  line: token('--line'),
  accent: token('--accent'),
  good: token('--good'),
  bad: token('--bad'),
  warn: token('--warn'),
  font: token('--font'),
});

/**
 * A tooltip that is drawn into the chart: the Content-Security-Policy forbids styles in markup.
 * @param {Colours} c @param {(params: any) => string} formatter
 */
export const tooltip = (c, formatter) => ({
  renderMode: 'richText',
  trigger: 'item',
  confine: true,
  formatter,
  backgroundColor: c.raised,
  borderColor: c.line,
  borderWidth: 1,
  padding: [8, 10],
  textStyle: { color: c.ink, fontSize: 12, lineHeight: 18, fontFamily: c.font },
});

/**
 * An axis with a title in the middle, quiet lines, and whole numbers.
 * @param {Colours} c @param {string} name @param {number} gap between the axis and its title
 * @param {any} [more] settings of this axis
 */
export const axis = (c, name, gap, more = {}) => ({
  type: 'value',
  name,
  nameLocation: 'middle',
  nameGap: gap,
  nameTextStyle: { color: c.muted, fontSize: 12, fontFamily: c.font },
  axisLine: { show: true, lineStyle: { color: c.muted } },
  axisTick: { show: false },
  splitLine: { lineStyle: { color: c.line, width: 1 } },
  ...more,
  axisLabel: { color: c.muted, fontSize: 11, fontFamily: c.font, hideOverlap: true, ...more.axisLabel },
});

/**
 * A chart. `option` returns the ECharts option for the colours; the chart is drawn again when this function
 * changes, so wrap it in useCallback. `onPick` handles a click on a mark (its series and index in the data); if it
 * returns false, `onPlot` handles the click, in the units of the axes.
 * @param {{option: (c: Colours) => any, label: string, tall?: boolean,
 *   onPick?: (series: string, index: number) => boolean, onPlot?: (x: number, y: number) => void}} props
 */
export function Chart({ option, label, tall = false, onPick, onPlot }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {Instance | null} */ (null));
  const drawn = useRef(/** @type {Instance | null} */ (null));
  const [state, setState] = useState(/** @type {"loading" | "ready" | "failed"} */ ('loading'));
  const handlers = useRef({ onPick, onPlot });
  handlers.current = { onPick, onPlot };
  const theme = useTheme();
  const still = useReducedMotion();

  useEffect(() => {
    let gone = false;
    const watcher = new ResizeObserver(() => chart.current?.resize());
    echarts().then(
      (module) => {
        if (gone || !place.current) return;
        chart.current = module.init(place.current);
        listen(chart.current, handlers);
        watcher.observe(place.current);
        setState('ready');
      },
      () => setState('failed'),
    );
    return () => {
      gone = true;
      watcher.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    const c = colours();
    const first = drawn.current !== chart.current; // later ones without animation: users change steps quickly
    drawn.current = chart.current;
    chart.current?.setOption(
      {
        animation: first && !still,
        animationDuration: 250,
        textStyle: { fontFamily: c.font },
        aria: { enabled: true, label: { description: label } },
        ...option(c),
      },
      { notMerge: true },
    );
  }, [state, option, label, theme, still]);

  if (state === 'failed') {
    return html`<${Notice} kind="warn" title="The chart could not be loaded">
      The same numbers are in the table below.
    <//>`;
  }
  return html`<div class=${tall ? 'chart chart-tall' : 'chart'}>
    ${state === 'loading' ? html`<${Spinner} label="Drawing" />` : null}
    <div class="chart-place" role="img" aria-label=${label} ref=${place}></div>
  </div>`;
}

/**
 * Clicks on marks and in the grid.
 * @param {Instance} chart
 * @param {{current: {onPick?: (series: string, index: number) => boolean,
 *   onPlot?: (x: number, y: number) => void}}} handlers
 */
function listen(chart, handlers) {
  let picked = false;
  chart.on('click', (params) => {
    picked = handlers.current.onPick?.(params.seriesId ?? '', params.dataIndex) ?? false;
  });
  chart.getZr().on('click', (/** @type {{offsetX: number, offsetY: number}} */ event) => {
    // ECharts reports a mark from its own handler of this event, which runs first.
    const pixel = [event.offsetX, event.offsetY];
    if (!picked && chart.containPixel('grid', pixel)) {
      const [x, y] = chart.convertFromPixel('grid', pixel);
      handlers.current.onPlot?.(x, y);
    }
    picked = false;
  });
}
