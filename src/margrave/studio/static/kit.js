// What every part of the page shares, from one place: Preact and hooks, formats, small components.
// @ts-check

export * from './kit_core.js';
export * from './kit_format.js';
export * from './kit_parts.js';
