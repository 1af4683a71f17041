// A new dialog, the choices: the target, the model, and further options.
// @ts-check

import { Field, Notice, count, html, labelText, nameClass, percent } from './kit.js';

/** @typedef {import('./types.js').Classes} Classes */
/** @typedef {import('./types.js').DialogRequest} DialogRequest */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').MemberKind} MemberKind */
/** @typedef {import('./types.js').Table} Table */
/** @typedef {Omit<DialogRequest, "table">} Choices */
/** @typedef {(change: Partial<Choices>) => void} Change */

export const MOST_LEVELS = 15;
const MANY_CLASSES = 50;
const GUESSED = 'Guessed from the table; choose another column if the guess is wrong.';

/** Why a class is the positive one. @param {Classes} classes @param {Label | null} chosen */
function whyPositive({ classes, positive }, chosen) {
  if (chosen === null) {
    return 'Without a positive class, limits name the classes that they are about. Choose one if it matters most to find it.';
  }
  const name = nameClass(chosen);
  if (chosen !== positive) return `${name} is the positive class because you chose it.`;
  const own = classes.find(({ label }) => label === positive)?.count ?? 0;
  const others = classes.filter(({ label }) => label !== positive).map(({ count: n }) => n);
  let why = 'the data set says so';
  if (others.length === 1 && own < others[0]) why = 'it is the rarer one';
  if (others.length === 1 && own === others[0]) why = 'both are equally frequent and it is the first in order';
  return `${name} is the positive class because ${why}. Choose another class if that is the one you want to find.`;
}

/**
 * The target, its classes, and the positive one.
 * @param {{table: Table, choices: Choices, change: Change, classes: Classes | null, problem: string}} props
 */
export function Target({ table, choices, change, classes, problem }) {
  const total = classes?.classes.reduce((sum, { count: n }) => sum + n, 0) ?? 0;
  /** @type {(Label | null)[]} */
  const options = classes ? classes.classes.map(({ label }) => label) : [];
  if (options.length > 2) options.push(null);
  const many = options.length > MANY_CLASSES;
  return html`<section class="card stack" aria-labelledby="target-head">
    <h2 id="target-head">Target</h2>
    <${Field}
      id="target"
      label="Column with the classes"
      hint=${choices.target && table.target === choices.target ? GUESSED : null}
    >
      <select
        id="target"
        value=${choices.target}
        onChange=${(/** @type {any} */ event) => change({ target: event.target.value, positive: null })}
      >
        ${choices.target ? null : html`<option value="">Choose a column</option>`}
        ${table.columns.map(({ name }) => html`<option value=${name}>${name}</option>`)}
      </select>
    <//>
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    ${
      classes
        ? html`<fieldset class="stack classes-set">
          <legend class="field-label">Positive class</legend>
          <p class="field-hint">
            The class that you want to find. A false positive is another class predicted as this one; a false negative
            is this class predicted as another.
          </p>
          <p class="small">${whyPositive(classes, choices.positive)}</p>
          ${many ? html`<p>${count(options.length - 1)} classes: is this the right column?</p>` : null}
          <div class="classes">
            ${(many ? [null] : options).map((label, at) => {
              const n = label === null ? null : classes.classes[at].count;
              return html`<label class="class-choice" key=${labelText(label)}>
                <input
                  type="radio"
                  name="positive"
                  checked=${choices.positive === label}
                  onChange=${() => change({ positive: label })}
                />
                <span class="class-name">${label === null ? 'None in particular' : labelText(label)}</span>
                ${n === null ? null : html`<span class="muted number">${count(n)} · ${percent(n / total)}</span>`}
              </label>`;
            })}
          </div>
        </fieldset>`
        : null
    }
  </section>`;
}

/**
 * A committee with its members, or a program with its levels.
 * @param {{choices: Choices, change: Change, members: MemberKind[]}} props
 */
export function Steered({ choices, change, members }) {
  const chosen = choices.members ?? members.map(({ name }) => name);
  /** @param {string} name */
  const toggle = (name) => {
    const next = members
      .map((member) => member.name)
      .filter((other) => chosen.includes(other) !== (other === name));
    change({ members: next.length === members.length ? null : next });
  };
  const kinds = /** @type {const} */ ([
    [
      'committee',
      'A committee',
      'Several members with different errors, combined by weights. The usual choice.',
    ],
    [
      'program',
      'A martingale program',
      'A layered graph of small learners. Each node can be inspected and tuned.',
    ],
  ]);
  return html`<section class="card stack" aria-labelledby="steer-head">
    <h2 id="steer-head">Model</h2>
    <div class="kinds" role="radiogroup" aria-labelledby="steer-head">
      ${kinds.map(
        ([kind, name, about]) =>
          html`<label class=${`kind ${choices.kind === kind ? 'kind-chosen' : ''}`} key=${kind}>
            <input type="radio" name="kind" checked=${choices.kind === kind} onChange=${() => change({ kind })} />
            <span><strong>${name}</strong><span class="muted small">${about}</span></span>
          </label>`,
      )}
    </div>
    ${
      choices.kind === 'committee'
        ? html`<fieldset>
          <legend class="field-label">Members to train</legend>
          <p class="field-hint">Different members make different errors. Fewer members train faster.</p>
          <ul class="member-list">
            ${members.map(
              ({ name, about }) =>
                html`<li key=${name}>
                  <label class="member">
                    <input type="checkbox" checked=${chosen.includes(name)} onChange=${() => toggle(name)} />
                    <span class="member-name">${name}</span><span class="muted small">${about}</span>
                  </label>
                </li>`,
            )}
          </ul>
          ${chosen.length === 0 ? html`<p class="bad small">A committee needs at least one member.</p>` : null}
        </fieldset>`
        : html`<${Field}
          id="levels"
          label="Levels"
          hint="Each level adds a layer of learners; more can be added later. An odd number avoids ties."
        >
          <input
            id="levels"
            class="short"
            type="number"
            min="1"
            max=${MOST_LEVELS}
            value=${choices.levels}
            onInput=${(/** @type {any} */ event) => change({ levels: Math.round(Number(event.target.value)) })}
          />
        <//>`
    }
  </section>`;
}

/** Further options. @param {{table: Table, choices: Choices, change: Change}} props */
export function More({ table, choices, change }) {
  const columns = table.columns.map(({ name }) => name).filter((name) => name !== choices.target);
  /** @param {"group" | "time"} key @param {string} label @param {string} hint */
  const column = (key, label, hint) =>
    html`<${Field} id=${key} label=${label} hint=${hint}>
      <select
        id=${key}
        value=${choices[key] ?? ''}
        onChange=${(/** @type {any} */ event) => change({ [key]: event.target.value || null })}
      >
        <option value="">None</option>
        ${columns.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
    <//>`;
  const fractions = [
    ['auto', 'Automatic'],
    ...['0.2', '0.3', '0.4', '0.5'].map((fraction) => [fraction, percent(Number(fraction), 0)]),
    ['none', 'None'],
  ];
  return html`<details class="card more">
    <summary>More options: title, groups, time, equal rows, certification set</summary>
    <div class="more-fields">
      <${Field} id="title" label="Title of the dialog" hint="The name in the list of dialogs; it can be changed later.">
        <input
          id="title"
          type="text"
          maxlength="200"
          placeholder=${table.name}
          value=${choices.title ?? ''}
          onInput=${(/** @type {any} */ { target }) => change({ title: target.value.trim() ? target.value : null })}
        />
      <//>
      <${Field} id="seed" label="Seed" hint="The split and the training repeat with the same seed.">
        <input
          id="seed"
          class="short"
          type="number"
          min="0"
          value=${choices.seed}
          onInput=${(/** @type {any} */ event) => change({ seed: Math.max(0, Math.round(Number(event.target.value))) })}
        />
      <//>
      ${column(
        'group',
        'Rows that belong together',
        'Such as mails of one sender: a group is never split, and the certification set has one row of each, or of each and class.',
      )}
      ${column('time', 'Time of a row', 'The latest rows are the certification set, and members are evaluated on later rows.')}
      <${Field}
        id="duplicates"
        label="Equal rows"
        hint="Copies stay together, and count once in the certification set. Rows of columns with few values are equal by chance."
      >
        <select
          id="duplicates"
          value=${choices.duplicates}
          onChange=${(/** @type {any} */ event) => change({ duplicates: event.target.value })}
        >
          <option value="auto">Copies, unless the columns have few values</option>
          <option value="group">Copies; ask if many are only nearly equal</option>
          <option value="near">Copies, also if they are only nearly equal</option>
          <option value="independent">Independent observations</option>
        </select>
      <//>
      <${Field}
        id="certify"
        label="Size of the certification set"
        hint="Automatic plans it for the stated guarantee; without one, it takes a fifth of the rows."
      >
        <select
          id="certify"
          value=${choices.certify === null ? 'none' : String(choices.certify)}
          onChange=${(/** @type {any} */ event) => {
            const value = event.target.value;
            change({ certify: value === 'none' ? null : value === 'auto' ? 'auto' : Number(value) });
          }}
        >
          ${fractions.map(([fraction, text]) => html`<option value=${fraction}>${text}</option>`)}
        </select>
      <//>
    </div>
  </details>`;
}
