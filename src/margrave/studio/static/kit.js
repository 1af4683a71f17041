// The shared parts of the page in one module: Preact and hooks, formats, small components.
// @ts-check

export * from './kit_core.js';
export * from './kit_format.js';
export * from './kit_parts.js';
