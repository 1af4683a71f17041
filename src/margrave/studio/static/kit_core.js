// Preact with types, and the hooks that the parts of the page share. Import them from kit.js.
// @ts-check

import * as preact from './vendor/preact.js';
import { link } from './api.js';

/** @typedef {any} VNode */
/**
 * @template T
 * @typedef {{current: T}} Ref
 */

const found = /** @type {any} */ (preact);

/** @type {(strings: TemplateStringsArray, ...values: any[]) => VNode} */
export const html = found.html;
/** @type {(tree: VNode, parent: Element) => void} */
export const render = found.render;
/** @type {<S>(initial: S | (() => S)) => [S, (next: S | ((now: S) => S)) => void]} */
export const useState = found.useState;
/** @type {(effect: () => void | (() => void), deps?: any[]) => void} */
export const useEffect = found.useEffect;
/** @type {(effect: () => void | (() => void), deps?: any[]) => void} */
export const useLayoutEffect = found.useLayoutEffect;
/** @type {<T>(initial: T) => Ref<T>} */
export const useRef = found.useRef;
/** @type {<T>(make: () => T, deps: any[]) => T} */
export const useMemo = found.useMemo;
/** @type {<F extends Function>(callback: F, deps: any[]) => F} */
export const useCallback = found.useCallback;
/** @type {(handler?: (error: any) => void) => [any, () => void]} */
export const useErrorBoundary = found.useErrorBoundary;

/** Tell a screen reader, politely unless `urgent`. @param {string} text @param {boolean} [urgent] */
export function announce(text, urgent = false) {
  const place = document.getElementById(urgent ? 'live-urgent' : 'live');
  if (!place) return;
  place.textContent = '';
  // A changed text is read; the same text again is not, so it is taken away for a moment.
  requestAnimationFrame(() => {
    place.textContent = text;
  });
}

/** Whether a media query matches, now and later. @param {string} media @returns {boolean} */
export function useMedia(media) {
  const list = useMemo(() => window.matchMedia(media), [media]);
  const [matches, setMatches] = useState(list.matches);
  useEffect(() => {
    const change = () => setMatches(list.matches);
    change();
    list.addEventListener('change', change);
    return () => list.removeEventListener('change', change);
  }, [list]);
  return matches;
}

/** Whether the user asked for less motion. @returns {boolean} */
export const useReducedMotion = () => useMedia('(prefers-reduced-motion: reduce)');

/** The theme that is shown, "light" or "dark"; changes when the user or the system switches. */
export function useTheme() {
  const dark = useMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const [chosen, setChosen] = useState(root.dataset.theme);
  useEffect(() => {
    const watcher = new MutationObserver(() => setChosen(root.dataset.theme));
    watcher.observe(root, { attributes: true, attributeFilter: ['data-theme'] });
    return () => watcher.disconnect();
  }, []);
  return chosen ?? (dark ? 'dark' : 'light');
}

/** The value of a CSS token, such as token("--accent"), in the theme that is shown. @param {string} name */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A value that follows `value` once it has rested for `ms`.
 * @template T @param {T} value @param {number} ms @returns {T}
 */
export function useDebounced(value, ms) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}

/**
 * Load something when `deps` change and when a lost server is back; what was loaded before stays
 * while the new comes. `load` gets a signal that ends a request nobody waits for any more.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load @param {any[]} deps
 * @returns {{data: T | null, error: Error | null, loading: boolean, reload: () => void}}
 */
export function useLoad(load, deps) {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(
    /** @type {{data: T | null, error: Error | null, loading: boolean}} */ ({
      data: null,
      error: null,
      loading: true,
    }),
  );
  const reload = useCallback(() => setTurn((/** @type {number} */ now) => now + 1), []);
  useEffect(() => {
    const control = new AbortController();
    setState((now) => ({ ...now, loading: true }));
    load(control.signal).then(
      (data) => {
        if (!control.signal.aborted) setState({ data, error: null, loading: false });
      },
      (error) => {
        if (!control.signal.aborted) setState((now) => ({ ...now, error, loading: false }));
      },
    );
    return () => control.abort();
  }, [...deps, turn]);
  useEffect(() => link.watch((now) => now === 'up' && reload()), []);
  return { ...state, reload };
}

/** What takes the focus of a control inside it that rests or goes away. */
const AROUND = 'section, article, dialog, [role="tabpanel"], main';

/** @param {Element | null} element @returns {Element[]} from the inside out */
function around(element) {
  const found = [];
  for (let at = element?.parentElement; at; at = at.parentElement) if (at.matches(AROUND)) found.push(at);
  return found;
}

/**
 * Who works by keyboard keeps a place: when the control that has the focus is disabled or goes away,
 * what is around it takes the focus, and gives it back once the control can be used again.
 */
export function useFocusKept() {
  useEffect(() => {
    let byKey = false;
    let last = /** @type {HTMLElement | null} */ (null);
    let places = /** @type {Element[]} */ ([]);
    let resting = /** @type {{control: HTMLElement, place: Element} | null} */ (null);
    let waits = 0;
    const look = () => {
      waits = 0;
      const now = document.activeElement;
      if (!byKey || !last || (now !== last && now !== document.body)) return;
      if (resting?.place === now && resting.control.isConnected && !resting.control.matches(':disabled')) {
        resting.control.focus({ preventScroll: true });
      } else if (!last.isConnected || last.matches(':disabled')) {
        const place = /** @type {HTMLElement | undefined} */ (places.find((one) => one.isConnected));
        if (!place) return;
        const control = last.isConnected ? last : null;
        if (!place.hasAttribute('tabindex')) place.setAttribute('tabindex', '-1');
        place.focus({ preventScroll: true });
        resting = control && { control, place };
      }
    };
    /** @param {FocusEvent} event */
    const move = (event) => {
      last = /** @type {HTMLElement} */ (event.target);
      places = around(last);
      resting = null;
    };
    /** @param {Event} event */
    const use = (event) => {
      byKey = event.type === 'keydown';
    };
    const watcher = new MutationObserver(() => {
      // Not at once: the focus may be on its way from one control to the next.
      if (!waits) waits = requestAnimationFrame(look);
    });
    watcher.observe(document.body, { subtree: true, childList: true, attributeFilter: ['disabled'] });
    document.addEventListener('focusin', move);
    window.addEventListener('keydown', use, true);
    window.addEventListener('pointerdown', use, true);
    return () => {
      watcher.disconnect();
      cancelAnimationFrame(waits);
      document.removeEventListener('focusin', move);
      window.removeEventListener('keydown', use, true);
      window.removeEventListener('pointerdown', use, true);
    };
  }, []);
}
