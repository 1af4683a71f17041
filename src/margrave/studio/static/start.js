// The start page: the user's dialogs, to open, rename and delete, and a link to a new one.
// @ts-check

import { del, get, patch } from './api.js';
import {
  Empty,
  Field,
  Icon,
  Modal,
  Notice,
  Spinner,
  Tag,
  announce,
  html,
  plural,
  sentence,
  useEffect,
  useLoad,
  useState,
  when,
} from './kit.js';

/** @typedef {import('./types.js').DialogLine} DialogLine */

const WHILE_TRAINING_MS = 3000;

/** @param {{line: DialogLine}} props */
function State({ line }) {
  if (line.state === 'training') return html`<${Tag}>training<//>`;
  if (line.state === 'failed') return html`<${Tag} kind="bad">not trained<//>`;
  if (line.n_accepted > line.n_useless) return html`<${Tag} kind="good">certified<//>`;
  if (line.n_accepted > 0) return html`<${Tag} kind="warn">certified, but useless<//>`;
  if (line.preference === null) return html`<${Tag}>ready<//>`;
  return line.met ? html`<${Tag} kind="good">met<//>` : html`<${Tag} kind="warn">not met<//>`;
}

/** @param {{line: DialogLine, rename: () => void, remove: () => void}} props */
function Line({ line, rename, remove }) {
  const table = line.table_name === line.title ? null : line.table_name;
  const about = [table, line.kind === 'program' ? 'program' : 'committee'].filter(Boolean);
  return html`<li class="dialog-line">
    <div class="dialog-line-name">
      <a href=${`#/d/${encodeURIComponent(line.id)}`}>${line.title}</a>
      <span class="muted small">${about.join(' · ')}</span>
    </div>
    <div class="dialog-line-preference">
      <${State} line=${line} />
      ${
        line.preference
          ? html`<code title=${line.preference}>${line.preference}</code>`
          : html`<span class="muted small">${line.n_steps > 1 ? 'the current step has no limits' : 'no request yet'}</span>`
      }
    </div>
    <span class="muted small dialog-line-steps">
      ${plural(Math.max(0, line.n_steps - 1), 'step')} · ${when(line.updated)}
    </span>
    <div class="dialog-line-acts">
      <button type="button" class="button-icon" aria-label=${`Rename ${line.title}`} title="Rename" onClick=${rename}>
        <${Icon} name="edit" />
      </button>
      <button type="button" class="button-icon" aria-label=${`Delete ${line.title}`} title="Delete" onClick=${remove}>
        <${Icon} name="trash" />
      </button>
    </div>
  </li>`;
}

/** Remove what this browser has stored about a dialog. @param {string} id */
function forget(id) {
  for (const key of Object.keys(localStorage)) if (key.startsWith('margrave-') && key.includes(id)) localStorage.removeItem(key);
}

/**
 * A box over the page to rename a dialog, or to confirm that it is deleted.
 * @param {{line: DialogLine, deleting: boolean, done: () => void, close: () => void}} props
 */
function ChangeBox({ line, deleting, done, close }) {
  const [title, setTitle] = useState(line.title);
  const [problem, setProblem] = useState('');
  const path = `/api/dialogs/${encodeURIComponent(line.id)}`;
  /** @param {Event} [event] */
  const submit = async (event) => {
    event?.preventDefault();
    try {
      if (deleting) {
        await del(path);
        forget(line.id);
      } else await patch(path, { title: title.trim() });
      announce(deleting ? `${line.title} is deleted.` : `Renamed to ${title.trim()}.`);
      done();
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  const actions = html`<button type="button" class="button" onClick=${close}>Cancel</button>
    <button
      type="button"
      class=${deleting ? 'button-danger' : 'button-primary'}
      disabled=${!deleting && !title.trim()}
      onClick=${submit}
    >
      ${deleting ? 'Delete' : 'Rename'}
    </button>`;
  return html`<${Modal} title=${deleting ? 'Delete this dialog?' : 'Rename'} onClose=${close} actions=${actions}>
    ${
      deleting
        ? html`<p>
          This deletes <strong>${line.title}</strong> with all its steps${line.n_accepted > 0 ? ', its certified models' : ''}
          and its trained members. It cannot be undone.
        </p>`
        : html`<form onSubmit=${submit}>
          <${Field} id="new-title" label="Title">
            <input
              id="new-title"
              type="text"
              maxlength="200"
              value=${title}
              onInput=${(/** @type {any} */ event) => setTitle(event.target.value)}
            />
          <//>
        </form>`
    }
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
  <//>`;
}

/** The start page. */
export function Start() {
  const { data, error, reload } = useLoad((signal) => get('/api/dialogs', signal), []);
  const [change, setChange] = useState(/** @type {{line: DialogLine, deleting: boolean} | null} */ (null));
  /** @type {DialogLine[]} */
  const lines = data?.dialogs ?? [];
  const training = lines.some((line) => line.state === 'training');
  useEffect(() => {
    document.title = 'Margrave';
  }, []);
  useEffect(() => {
    if (!training) return undefined;
    const timer = setInterval(reload, WHILE_TRAINING_MS);
    return () => clearInterval(timer);
  }, [training]);
  const begin = html`<a class="button-primary" href="#/new"><${Icon} name="plus" />New dialog</a>`;
  return html`<div class="start">
    <div class="start-head">
      <div>
        <h1>Dialogs</h1>
        <p class="muted">
          Set limits on the errors of a classifier, see what they cost, and get a model that meets them.
        </p>
      </div>
      ${lines.length ? begin : null}
    </div>
    ${error && !data ? html`<${Notice} kind="bad">${error.message}<//>` : null}
    ${!data && !error ? html`<${Spinner} />` : null}
    ${
      data && lines.length === 0
        ? html`<div class="card">
          <${Empty} title="No dialogs yet" action=${begin}>
            Start with a sample data set, or with your own table.
          <//>
        </div>`
        : null
    }
    ${
      lines.length
        ? html`<ul class="dialog-list card">
          ${lines.map(
            (line) =>
              html`<${Line}
                key=${line.id}
                line=${line}
                rename=${() => setChange({ line, deleting: false })}
                remove=${() => setChange({ line, deleting: true })}
              />`,
          )}
        </ul>`
        : null
    }
    ${
      change
        ? html`<${ChangeBox}
          ...${change}
          close=${() => setChange(null)}
          done=${() => {
            setChange(null);
            reload();
          }}
        />`
        : null
    }
  </div>`;
}
