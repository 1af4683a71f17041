/** The types of preact.js, as far as the page uses them; written for Margrave. */

export interface VNode {
  readonly type: unknown;
  readonly props: Record<string, any>;
  readonly key: unknown;
}

/** What a component may return or take as a child. */
export type Child = VNode | string | number | boolean | null | undefined | Child[];

/** A component: a function of its properties. */
export type Part<P = any> = (properties: P) => Child;

/** The parts of a page, written as a template: html`<p class="note">${text}</p>`. */
export function html(strings: TemplateStringsArray, ...values: any[]): VNode;
export function h(type: unknown, properties: Record<string, any> | null, ...children: any[]): VNode;
export function render(tree: Child, parent: Element | DocumentFragment): void;

export abstract class Component<P = any, S = any> {
  constructor(properties?: P);
  props: P & { children?: any };
  state: S;
  setState(change: Partial<S> | ((state: S, properties: P) => Partial<S> | null), done?: () => void): void;
  forceUpdate(done?: () => void): void;
  componentDidMount?(): void;
  componentDidUpdate?(before: P, state: S): void;
  componentWillUnmount?(): void;
  componentDidCatch?(error: any): void;
  shouldComponentUpdate?(next: P, state: S): boolean;
  abstract render(properties?: P, state?: S): Child;
}

export interface Context<T> {
  Provider: Part<{ value: T; children?: any }>;
  Consumer: Part<{ children: (value: T) => Child }>;
}

export function createContext<T>(value: T): Context<T>;
export function useContext<T>(context: Context<T>): T;

export type Setter<S> = (value: S | ((before: S) => S)) => void;

export function useState<S>(initial: S | (() => S)): [S, Setter<S>];
export function useState<S = undefined>(): [S | undefined, Setter<S | undefined>];
export function useReducer<S, A>(reducer: (state: S, action: A) => S, initial: S): [S, (action: A) => void];
export function useReducer<S, A, I>(
  reducer: (state: S, action: A) => S,
  initial: I,
  start: (initial: I) => S,
): [S, (action: A) => void];
export function useRef<T>(initial: T): { current: T };
export function useRef<T = undefined>(): { current: T | undefined };
export function useMemo<T>(make: () => T, inputs?: readonly unknown[]): T;
export function useCallback<F extends (...values: any[]) => any>(callback: F, inputs?: readonly unknown[]): F;
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useImperativeHandle<T>(ref: { current: T }, make: () => T, inputs?: readonly unknown[]): void;
export function useErrorBoundary(told?: (error: any) => void): [any, () => void];
export function useDebugValue<T>(value: T, shown?: (value: T) => unknown): void;
