/** The types of echarts.js, as far as the page uses them; written for Margrave. */

/** What ECharts calls an option: a plain object that says what is drawn. */
export type Option = Record<string, any>;

/** What a listener or a formatter is told about the thing under the pointer. */
export interface Told {
  componentType: string;
  seriesIndex?: number;
  seriesName?: string;
  seriesId?: string;
  dataIndex: number;
  name: string;
  data: any;
  value: any;
  color: string;
  marker: string;
  event?: { offsetX: number; offsetY: number; event: Event };
  [more: string]: any;
}

export interface Chart {
  setOption(option: Option, how?: boolean | { notMerge?: boolean; replaceMerge?: string | string[]; lazyUpdate?: boolean; silent?: boolean }): void;
  getOption(): Option;
  resize(size?: { width?: number | "auto"; height?: number | "auto"; silent?: boolean; animation?: { duration?: number } }): void;
  dispatchAction(action: { type: string; [more: string]: any }): void;
  on(event: string, listener: (told: any) => void): void;
  on(event: string, query: string | Record<string, any>, listener: (told: any) => void): void;
  off(event: string, listener?: (told: any) => void): void;
  getZr(): { on(event: string, listener: (told: any) => void): void; off(event: string, listener?: (told: any) => void): void; [more: string]: any };
  convertToPixel(finder: string | Record<string, any>, value: number | number[]): any;
  convertFromPixel(finder: string | Record<string, any>, value: number | number[]): any;
  containPixel(finder: string | Record<string, any>, value: number[]): boolean;
  getWidth(): number;
  getHeight(): number;
  getDom(): HTMLElement;
  getDataURL(how?: Record<string, any>): string;
  clear(): void;
  dispose(): void;
  isDisposed(): boolean;
}

export interface ECharts {
  version: string;
  init(
    element: HTMLElement | null,
    theme?: string | Option | null,
    how?: { renderer?: "canvas" | "svg"; width?: number | "auto"; height?: number | "auto"; devicePixelRatio?: number; locale?: string },
  ): Chart;
  getInstanceByDom(element: HTMLElement): Chart | undefined;
  connect(group: string | Chart[]): string;
  registerTheme(name: string, theme: Option): void;
  graphic: Record<string, any>;
  format: Record<string, any>;
  time: Record<string, any>;
}

declare global {
  /** Set by vendor/echarts.js once it is loaded. */
  var echarts: ECharts;
}
