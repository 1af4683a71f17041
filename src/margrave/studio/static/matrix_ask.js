// The limits of an edit as sentences, before they are requested; with a field for words and a choice of strategies.
// @ts-check

import { goalText } from './dialog_state.js';
import { Icon, html, nameClass, useEffect, useState } from './kit.js';

/** @typedef {import('./preview.js').Outcome} Outcome */
/** @typedef {import('./types.js').GoalChoice} GoalChoice */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Reading} Reading */
/**
 * What to minimise within the limits. `choices`: by what the limits leave open; `value`: that of the request, "" for none;
 * `cost`: it is the lowest cost; `ratio`: the cost of a false negative in false positives, null until it is stated.
 * @typedef {{choices: GoalChoice[], value: string, choose: (then: string) => void, cost: boolean, ratio: number | null,
 *   chooseCost: (ratio: number | null) => void, focus: Label}} Goals
 */

const UNREACHABLE = 'No model found meets these limits together. The preview shows the nearest result.';
const HINT = 'Change a cell to set a limit: type a number in it, or drag it.';
const STILL = 'The matrix can be edited again after the reply to this request.';

/** The strategies, and what each does; the first two are the default. */
export const STRATEGIES = /** @type {const} */ ([
  ['move', 'move the threshold'],
  ['reject', 'reject uncertain rows'],
  ['retune', 'tune the learners'],
]);

/**
 * @param {{words: string, setWords: (words: string) => void, strategies: string[] | null,
 *   setStrategies: (strategies: string[] | null) => void, still: boolean, ask: () => void}} props
 */
function Advanced({ words, setWords, strategies, setStrategies, still, ask }) {
  const names = STRATEGIES.map(([name]) => /** @type {string} */ (name));
  const usual = names.slice(0, 2);
  const chosen = strategies ?? usual;
  /** @param {string} name */
  const toggle = (name) => {
    const next = names.filter((other) => chosen.includes(other) !== (other === name));
    setStrategies(next.length === 0 || next.join() === usual.join() ? null : next);
  };
  return html`<details class="ask-more">
    <summary>Limits in words, and strategies</summary>
    <div class="stack">
      <div class="field">
        <label for="words">Preference in words</label>
        <input
          id="words"
          type="text"
          class="mono"
          placeholder="fp <= 2%, rejected <= 5%"
          autocomplete="off"
          spellcheck=${false}
          disabled=${still}
          value=${words}
          onInput=${(/** @type {any} */ event) => setWords(event.target.value)}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && ask()}
        />
        <p class="field-hint">
          <code>fp</code> false positives, <code>fn</code> false negatives, <code>rejected</code>, <code>alarms</code>,
          <code> recall(class)</code>, <code>errors(a -> b)</code>; a count or a percentage.
        </p>
      </div>
      <fieldset class="strategies">
        <legend class="field-label">Strategies</legend>
        ${STRATEGIES.map(
          ([name, about]) =>
            html`<label class="check" key=${name}>
              <input
                type="checkbox"
                checked=${chosen.includes(name)}
                disabled=${still}
                onChange=${() => toggle(name)}
              />
              <span>${name} <span class="muted small">${about}</span></span>
            </label>`,
        )}
      </fieldset>
    </div>
  </details>`;
}

/**
 * The choice of what to minimise within the limits; the lowest cost has a field for the ratio of the costs.
 * @param {Goals & {still: boolean}} props
 */
function Then({ choices, value, choose, cost, ratio, chooseCost, focus, still }) {
  /** @param {string} text @param {boolean} checked @param {() => void} choose @param {string} [then] */
  const choice = (text, checked, choose, then) => html`<label class="check" key=${text} title=${then}>
    <input type="radio" name="then" checked=${checked} disabled=${still} onChange=${choose} />
    <span>${text}</span>
  </label>`;
  return html`<div class="ask-then small" role="radiogroup" aria-labelledby="ask-then">
    <span id="ask-then">Then</span>
    ${choices.map(({ then, text }) => choice(text, !cost && then === value, () => choose(then), then))}
    ${choice('lowest cost', cost, () => chooseCost(ratio))}
    ${cost ? html`<${Ratio} ratio=${ratio} change=${chooseCost} focus=${focus} still=${still} />` : null}
  </div>`;
}

/** @param {{ratio: number | null, change: (ratio: number | null) => void, focus: Label, still: boolean}} props */
function Ratio({ ratio, change, focus, still }) {
  const [text, setText] = useState('');
  useEffect(() => {
    if (ratio !== null && Number(text) !== ratio) setText(String(ratio)); // the costs panel has changed it
  }, [ratio]);
  /** @param {any} event */
  const read = (event) => {
    setText(event.currentTarget.value);
    const typed = Number(event.currentTarget.value);
    change(typed > 0 ? typed : null);
  };
  return html`<div class="ask-ratio">
    <label for="then-ratio">a missed ${nameClass(focus)} costs</label>
    <input
      id="then-ratio"
      class="input-number"
      type="number"
      min="0.01"
      step="any"
      placeholder="20"
      disabled=${still}
      value=${text}
      onInput=${read}
    />
    <span>times a false alarm</span>
  </div>`;
}

/**
 * The requested limits, the button, and the options.
 * @param {{reading: Reading | null, problem: string, reads: boolean, any: boolean, still: boolean, keep: boolean,
 *   kept: string, setKeep: (keep: boolean) => void, words: string, setWords: (words: string) => void,
 *   strategies: string[] | null, setStrategies: (strategies: string[] | null) => void, ask: () => void,
 *   clear: () => void, outcome: Outcome | null, announced: string, goals: Goals}} props
 *   `any`: something is edited; `reads`: the server is reading it; `kept`: the limits of the current step, or "";
 *   `announced`: the preview in words for screen readers, once it has settled
 */
export function AskBox({
  reading,
  problem,
  reads,
  any,
  still,
  keep,
  kept,
  setKeep,
  words,
  setWords,
  strategies,
  setStrategies,
  ask,
  clear,
  outcome,
  announced,
  goals,
}) {
  const wrong = problem || (any && reading?.error) || '';
  const sentences = any && !wrong ? (reading?.sentences ?? []) : [];
  const stated = !goals.cost || goals.ratio !== null;
  const ready = any && !wrong && !still && stated && reading !== null && reading.preference !== null;
  const goal = goals.cost ? 'lowest cost' : reading && goalText(reading);
  const replaced = ready ? reading.replaced : [];
  return html`<div class=${`ask ${any ? 'ask-ready' : ''}`}>
    <div id="matrix-sentence" class="ask-sentence" aria-live="polite">
      ${wrong ? html`<p class="bad"><${Icon} name="alert" /> ${wrong}</p>` : null}
      ${
        sentences.length
          ? html`<ul aria-busy=${reads}>
            ${sentences.map((text) => html`<li key=${text}>${text}</li>`)}
          </ul>`
          : null
      }
      ${any && !wrong && !sentences.length ? html`<p class="muted">Reading…</p>` : null}
      ${!any && !wrong ? html`<p class="muted">${still ? STILL : HINT}</p>` : null}
      ${any && !wrong && outcome && !outcome.reachable ? html`<p class="ask-unreachable small">${UNREACHABLE}</p>` : null}
      ${announced ? html`<p class="hidden">${announced}</p>` : null}
      ${
        ready && reading.already
          ? html`<p class="muted small">
              ${
                reading.preference === kept
                  ? 'This is the request of the current step.'
                  : `The matrix already meets these limits. A request uses what is left of them for the ${goal}.`
              }
            </p>`
          : null
      }
    </div>
    <div class="ask-acts">
      ${any ? html`<button type="button" class="button-quiet" disabled=${still} onClick=${clear}>Clear</button>` : null}
      <button type="button" class="button-primary ask-button" aria-disabled=${!ready} onClick=${ask}>Apply</button>
    </div>
    ${goals.choices.length ? html`<${Then} ...${goals} still=${still} />` : null}
    ${
      kept
        ? html`<label class="check small ask-keep">
          <input
            type="checkbox"
            checked=${keep}
            disabled=${still}
            onChange=${(/** @type {any} */ event) => setKeep(event.target.checked)}
          />
          <span>
            keep the earlier limits: <code>${kept}</code>
            ${replaced.length ? html`<br />The new limits replace <code>${replaced.join(', ')}</code>.` : null}
          </span>
        </label>`
        : null
    }
    <${Advanced} words=${words} setWords=${setWords} strategies=${strategies} setStrategies=${setStrategies} still=${still} ask=${ask} />
  </div>`;
}
