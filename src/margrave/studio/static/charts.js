// Charts with ECharts, which is loaded for the first chart, in the colours of the theme.
// @ts-check

import { link } from './api.js';
import { html, Notice, Spinner, token, useEffect, useLayoutEffect, useReducedMotion, useRef, useState, useTheme } from './kit.js';

/**
 * The colours of charts in the current theme.
 * @typedef {{surface: string, raised: string, ink: string, muted: string, line: string, accent: string,
 *   bad: string, font: string}} Colours
 */

/**
 * The used part of an ECharts instance.
 * @typedef {{setOption: (option: any, settings?: any) => void, resize: () => void,
 *   dispose: () => void, on: (event: string, handler: (params: any) => void) => void,
 *   dispatchAction: (action: any) => void, getZr: () => any, getDom: () => HTMLElement,
 *   convertFromPixel: (finder: any, pixel: number[]) => number[],
 *   convertToPixel: (finder: any, point: number[]) => number[],
 *   containPixel: (finder: any, pixel: number[]) => boolean,
 *   renderToSVGString: () => string, renderToCanvas: () => HTMLCanvasElement}} Instance
 */

/** The part of the plane that a chart shows. @typedef {{x: [number, number], y: [number, number]}} View */

/**
 * Lines through a point to both axes, and a text at each axis.
 * @typedef {{x: number, y: number, texts: [string, string], kind: string}} Cross
 */

const SOURCE = './vendor/echarts.js';

/** @type {Promise<{init: (place: HTMLElement | null, theme?: null, settings?: any) => Instance}> | null} */
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
  surface: token('--surface'),
  raised: token('--raised'),
  ink: token('--ink'),
  muted: token('--muted'),
  line: token('--line'),
  accent: token('--accent'),
  bad: token('--bad'),
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

/** The settings that all charts share. @param {Colours} c */
const settings = (c) => ({ textStyle: { fontFamily: c.font } });

/**
 * A chart as a file. `option` returns the ECharts option for the colours.
 * @param {"png" | "svg"} kind @param {(c: Colours) => any} option @param {number} width @param {number} height
 * @returns {Promise<Blob>}
 */
export async function chartFile(kind, option, width, height) {
  const module = await echarts();
  const size = { width, height };
  const chart =
    kind === 'svg'
      ? module.init(null, null, { ...size, renderer: 'svg', ssr: true })
      : module.init(document.createElement('div'), null, { ...size, devicePixelRatio: 2 });
  const c = colours();
  c.font = c.font.replaceAll('"', "'"); // the text of an SVG puts it into an attribute as it is
  try {
    chart.setOption({ ...settings(c), backgroundColor: c.surface, animation: false, ...option(c) });
    if (kind === 'svg') return new Blob([chart.renderToSVGString()], { type: 'image/svg+xml' });
    const canvas = chart.renderToCanvas();
    return await new Promise((resolve, reject) =>
      canvas.toBlob((made) => (made ? resolve(made) : reject(new Error('The browser made no picture.'))), 'image/png'),
    );
  } finally {
    chart.dispose();
  }
}

/**
 * The handlers of a chart. `pick` handles a click on a mark (its series and index in the data); if it returns
 * false, `plot` handles the click, in the units of the axes. `zoom` takes the new ends of each axis that the
 * user moved, as fractions, and returns the view. `near` finds the series near the pointer and its name, for
 * the pixels of one unit of each axis.
 * @typedef {{pick?: (series: string, index: number) => boolean, plot?: (x: number, y: number) => void,
 *   zoom?: (ends: Record<string, [number, number]>) => View,
 *   near?: (x: number, y: number, scale: [number, number]) => {series: string, name: string} | null}} Handlers
 */

/**
 * A chart. `option` returns the ECharts option for the colours and the width; the chart is drawn again when this
 * function changes, so wrap it in useCallback. `view` is the part that is shown, for an option with a dataZoom
 * "x" and a dataZoom "y"; `cross` is drawn over the chart without drawing the chart; `hot` is the id of a series
 * to highlight.
 * @param {{option: (c: Colours, width: number) => any, label: string, tall?: boolean, view?: View,
 *   cross?: Cross | null, hot?: string | null, on?: Handlers}} props
 */
export function Chart({ option, label, tall = false, view, cross = null, hot = null, on = {} }) {
  const [place, width] = useWidth();
  const chart = useRef(/** @type {Instance | null} */ (null));
  const drawn = useRef(/** @type {Instance | null} */ (null));
  const shown = useRef(view);
  const over = useRef(/** @type {HTMLDivElement | null} */ (null));
  const tip = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [state, setState] = useState(/** @type {"loading" | "ready" | "failed"} */ ('loading'));
  const [turn, setTurn] = useState(0);
  const handlers = useRef(on);
  handlers.current = on;
  const latest = useRef({ cross, view });
  latest.current = { cross, view };
  const theme = useTheme();
  const still = useReducedMotion();
  const placeCross = () => {
    const { cross: at, view: part } = latest.current;
    const ready = drawn.current === chart.current ? chart.current : null; // it has axes
    if (over.current) drawCross(over.current, ready, at, part);
  };

  useEffect(() => {
    let gone = false;
    echarts().then(
      (module) => {
        if (gone || !place.current) return;
        chart.current = module.init(place.current);
        listen(chart.current, handlers, tip, (next) => {
          shown.current = next;
        });
        setState('ready');
      },
      () => setState('failed'),
    );
    return () => {
      gone = true;
      chart.current?.dispose();
      chart.current = null;
    };
  }, [turn]);
  useEffect(() => {
    if (state !== 'failed') return undefined;
    return link.watch((now) => {
      if (now !== 'up') return;
      setState('loading');
      setTurn((/** @type {number} */ last) => last + 1);
    });
  }, [state]);

  useEffect(() => {
    if (!chart.current || !width) return;
    const c = colours();
    const first = drawn.current !== chart.current; // later ones without animation: users change steps quickly
    drawn.current = chart.current;
    shown.current = view;
    chart.current.resize();
    chart.current.setOption(
      {
        animation: first && !still,
        animationDuration: 250,
        ...settings(c),
        aria: { enabled: true, label: { description: label } },
        ...option(c, width),
      },
      { notMerge: true },
    );
    placeCross();
  }, [state, option, label, theme, still, width]);

  useEffect(() => {
    if (view && view !== shown.current) {
      shown.current = view;
      const batch = /** @type {const} */ (['x', 'y']).map((axis) => ({
        dataZoomId: axis,
        startValue: view[axis][0],
        endValue: view[axis][1],
      }));
      chart.current?.dispatchAction({ type: 'dataZoom', batch });
    }
    placeCross();
  }, [view]);
  useLayoutEffect(placeCross, [cross]);
  useEffect(() => {
    if (!hot) return undefined;
    chart.current?.dispatchAction({ type: 'highlight', seriesId: hot });
    return () => chart.current?.dispatchAction({ type: 'downplay', seriesId: hot });
  }, [hot]);

  return html`${state === 'failed'
      ? html`<${Notice} kind="warn" title="The chart could not be loaded">The same numbers are in the table below.<//>`
      : null}
    <div class=${tall ? 'chart chart-tall' : 'chart'} hidden=${state === 'failed'}>
    ${state === 'loading' ? html`<${Spinner} label="Drawing" />` : null}
    <div class="chart-place" role="img" aria-label=${label} ref=${place}></div>
    <div class="chart-over" aria-hidden="true" ref=${over} hidden>
      <span class="cross-line"></span><span class="cross-line"></span><b></b><b></b>
    </div>
    <div class="chart-tip" aria-hidden="true" ref=${tip} hidden></div>
  </div>`;
}

/**
 * Put the crosshair over the chart; a line outside of the view is hidden, its text stays at the edge.
 * @param {HTMLElement} box @param {Instance | null} chart @param {Cross | null} cross @param {View | undefined} view
 */
function drawCross(box, chart, cross, view) {
  box.hidden = !chart || !cross || !view;
  if (!chart || !cross || !view) return;
  const [left, bottom] = chart.convertToPixel('grid', [view.x[0], view.y[0]]);
  const [right, top] = chart.convertToPixel('grid', [view.x[1], view.y[1]]);
  const [x, y] = chart.convertToPixel('grid', [cross.x, cross.y]);
  const [atX, atY] = [Math.min(right, Math.max(left, x)), Math.min(bottom, Math.max(top, y))];
  const [upright, flat, xText, yText] = /** @type {HTMLElement[]} */ ([...box.children]);
  box.dataset.kind = cross.kind;
  upright.hidden = Math.abs(atX - x) > 1;
  flat.hidden = Math.abs(atY - y) > 1;
  Object.assign(upright.style, { left: `${atX}px`, top: `${top}px`, height: `${bottom - top}px` });
  Object.assign(flat.style, { left: `${left}px`, top: `${atY}px`, width: `${right - left}px` });
  [xText.textContent, yText.textContent] = cross.texts;
  Object.assign(xText.style, { left: `${atX}px`, top: `${bottom}px` });
  // A long number covers a part of the plot rather than being cut off.
  Object.assign(yText.style, { left: `${left}px`, top: `${atY}px`, transform: `translate(max(-100% - 4px, ${-left}px), -50%)` });
}

/**
 * Clicks on marks and in the grid, zooms, and the pointer on lines.
 * @param {Instance} chart @param {{current: Handlers}} handlers
 * @param {{current: HTMLElement | null}} tip @param {(view: View) => void} zoomed
 */
function listen(chart, handlers, tip, zoomed) {
  // One finger or the wheel scrolls the page. ECharts would prevent that, so it does not get these events.
  const dom = chart.getDom();
  dom.addEventListener('touchmove', (event) => event.touches.length < 2 && event.stopPropagation(), true);
  for (const wheel of ['wheel', 'mousewheel']) {
    dom.addEventListener(wheel, (event) => !(/** @type {WheelEvent} */ (event).ctrlKey) && event.stopPropagation(), true);
  }
  let picked = false;
  chart.on('click', (params) => {
    picked = handlers.current.pick?.(params.seriesId ?? '', params.dataIndex) ?? false;
  });
  chart.getZr().on('click', (/** @type {{offsetX: number, offsetY: number}} */ event) => {
    // ECharts reports a mark from its own handler of this event, which runs first.
    const pixel = [event.offsetX, event.offsetY];
    if (!picked && chart.containPixel('grid', pixel)) {
      const [x, y] = chart.convertFromPixel('grid', pixel);
      handlers.current.plot?.(x, y);
    }
    picked = false;
  });
  chart.on('datazoom', (params) => {
    /** @type {Record<string, [number, number]>} */
    const ends = {};
    for (const { dataZoomId, start, end } of params.batch ?? [params]) {
      if (start !== undefined) ends[dataZoomId] = [start / 100, end / 100];
    }
    // A zoom by this page has values instead of percentages.
    if (Object.keys(ends).length && handlers.current.zoom) zoomed(handlers.current.zoom(ends));
  });
  let hot = '';
  /** @param {{series: string, name: string} | null} found @param {number} x @param {number} y */
  const point = (found, x, y) => {
    const series = found?.series ?? '';
    if (series !== hot && hot) chart.dispatchAction({ type: 'downplay', seriesId: hot });
    if (series !== hot && series) chart.dispatchAction({ type: 'highlight', seriesId: series });
    hot = series;
    if (!tip.current) return;
    tip.current.hidden = !found;
    tip.current.textContent = found?.name ?? '';
    Object.assign(tip.current.style, { left: `${x}px`, top: `${y}px` });
  };
  chart.getZr().on('mousemove', (/** @type {{offsetX: number, offsetY: number, target: any}} */ event) => {
    const pixel = [event.offsetX, event.offsetY];
    // A mark has a tooltip of its own.
    const empty = !event.target && chart.containPixel('grid', pixel);
    const [x, y] = empty ? chart.convertFromPixel('grid', pixel) : [0, 0];
    const found = empty ? handlers.current.near?.(x, y, scaleOf(chart)) : null;
    point(found ?? null, pixel[0], pixel[1]);
  });
  chart.getZr().on('globalout', () => point(null, 0, 0));
}

/** The pixels of one unit of each axis. @param {Instance} chart @returns {[number, number]} */
function scaleOf(chart) {
  const [[left, bottom], [right, top]] = [[0, 0], [1, 1]].map((point) => chart.convertToPixel('grid', point));
  return [right - left, bottom - top];
}
