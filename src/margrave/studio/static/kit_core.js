// Preact with types, and the hooks that the parts of the page share. Import them from kit.js.
// @ts-check

import * as preact from './vendor/preact.js';
import { link } from './api.js';

/** @typedef {any} VNode */
/**
 * @template T
 * @typedef {{current: T}} Ref
 */

const untyped = /** @type {any} */ (preact);

/** @type {(strings: TemplateStringsArray, ...values: any[]) => VNode} */
export const html = untyped.html;
/** @type {(tree: VNode, parent: Element) => void} */
export const render = untyped.render;
/** @type {<S>(initial: S | (() => S)) => [S, (next: S | ((now: S) => S)) => void]} */
export const useState = untyped.useState;
/** @type {(effect: () => void | (() => void), deps?: any[]) => void} */
export const useEffect = untyped.useEffect;
/** @type {(effect: () => void | (() => void), deps?: any[]) => void} */
export const useLayoutEffect = untyped.useLayoutEffect;
/** @type {<T>(initial: T) => Ref<T>} */
export const useRef = untyped.useRef;
/** @type {<T>(make: () => T, deps: any[]) => T} */
export const useMemo = untyped.useMemo;
/** @type {<F extends Function>(callback: F, deps: any[]) => F} */
export const useCallback = untyped.useCallback;
/** @type {(handler?: (error: any) => void) => [any, () => void]} */
export const useErrorBoundary = untyped.useErrorBoundary;

/** Announce a text to screen readers, politely unless `urgent`. @param {string} text @param {boolean} [urgent] */
export function announce(text, urgent = false) {
  const place = document.getElementById(urgent ? 'live-urgent' : 'live');
  if (!place) return;
  place.textContent = '';
  // Screen readers only read a changed text, so it is cleared for a moment.
  requestAnimationFrame(() => {
    place.textContent = text;
  });
}

/** Whether a media query matches; updates when this changes. @param {string} media @returns {boolean} */
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

/** Whether the user prefers reduced motion. @returns {boolean} */
export const useReducedMotion = () => useMedia('(prefers-reduced-motion: reduce)');

/** The current theme, "light" or "dark"; updates when the user or the system changes it. */
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

/** The value of a CSS token, such as token("--accent"), in the current theme. @param {string} name */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * The last `value` that did not change for `ms` milliseconds.
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
 * Load data when `deps` change and when the server can be reached again; the earlier data stays until
 * the new data arrives. `load` gets a signal that aborts an outdated request.
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

/** The elements that take over the focus of a control in them that is disabled or removed. */
const AROUND = 'section, article, dialog, [role="tabpanel"], main';

/** @param {Element | null} element @returns {Element[]} from the inside out */
function around(element) {
  const found = [];
  for (let at = element?.parentElement; at; at = at.parentElement) if (at.matches(AROUND)) found.push(at);
  return found;
}

/**
 * Keeps the position of keyboard users: when the focused control is disabled or removed, an element
 * around it takes the focus, and returns it when the control is enabled again.
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
      // In the next frame, since the focus may be moving from one control to the next.
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
