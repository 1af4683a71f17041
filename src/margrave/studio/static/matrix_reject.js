// "Reject up to __ %": a slider and a field for the largest fraction of rejected rows.
// @ts-check

import { html } from './kit.js';

const MOST = 20;
const STEP = 0.5;

/** @param {{value: number, still: boolean, change: (value: number) => void}} props */
export function RejectSlider({ value, still, change }) {
  /** @param {any} event */
  const read = (event) => {
    const typed = Number(event.currentTarget.value);
    if (event.currentTarget.value !== '' && typed >= 0 && typed <= 100) change(typed);
  };
  return html`<div class="reject">
    <label for="reject-percent">Reject up to</label>
    <input
      id="reject-percent"
      class="input-number"
      type="number"
      min="0"
      max="100"
      step=${STEP}
      disabled=${still}
      value=${value}
      onInput=${read}
    />
    <span>% of the rows</span>
    <input
      type="range"
      class="slider"
      min="0"
      max=${MOST}
      step=${STEP}
      disabled=${still}
      value=${Math.min(value, MOST)}
      aria-label="Largest percentage of rejected rows"
      aria-valuetext=${`${value}%`}
      onInput=${read}
    />
    <p class="muted small">Rejected rows get no prediction; a person decides about them.</p>
  </div>`;
}
