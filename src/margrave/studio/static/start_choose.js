// A new dialog, first page: choose a sample data set, or upload a table.
// @ts-check

import { ApiError, post, upload } from './api.js';
import {
  Bar,
  Empty,
  Icon,
  Notice,
  Spinner,
  announce,
  bytes,
  count,
  html,
  percent,
  sentence,
  useEffect,
  useRef,
  useState,
} from './kit.js';

/** @typedef {import('./types.js').BundledSet} BundledSet */
/** @typedef {import('./types.js').Limits} Limits */
/** @typedef {import('./types.js').Studio} Studio */
/** @typedef {import('./types.js').Table} Table */

/**
 * A text file that the studio reads only if the user confirms its encoding and decimal mark.
 * @typedef {{file: File, encoding: string, decimal: string, example: string}} Doubt
 */

/** @type {Record<string, string>} */
const ENCODINGS = { cp1252: 'Windows-1252', 'utf-16': 'UTF-16' };
const ENDINGS = ['.csv', '.csv.gz', '.tsv', '.txt', '.parquet'];

/** @param {Table} table */
const go = (table) => {
  location.hash = `#/new/${encodeURIComponent(table.id)}`;
};

/**
 * Why a file cannot be uploaded, or "".
 * @param {File} file @param {Limits | undefined} limits
 */
function objection(file, limits) {
  const name = file.name.toLowerCase();
  if (!ENDINGS.some((ending) => name.endsWith(ending))) {
    return `${file.name} is neither CSV nor Parquet. The name has to end in ${ENDINGS.join(', ')}.`;
  }
  if (file.size === 0) return `${file.name} is empty.`;
  if (limits && file.size > limits.upload_bytes) {
    return `${file.name} has ${bytes(file.size)}; the limit is ${bytes(limits.upload_bytes)}.`;
  }
  return '';
}

/** @param {Limits} limits */
const limitsText = (limits) =>
  `${bytes(limits.upload_bytes)}, ${count(limits.rows)} rows, ${count(limits.columns)} columns`;

/**
 * What a text file looks like, and buttons that read it so.
 * @param {{doubt: Doubt, read: (decimal: string) => void}} props
 */
function Confirm({ doubt, read }) {
  const { file, encoding, decimal, example } = doubt;
  const other = ENCODINGS[encoding];
  const commas = decimal === ',';
  const reading = [other ? `as ${other}` : '', commas ? 'with decimal commas' : ''].filter(Boolean).join(' ');
  const text = other
    ? `${file.name} is not UTF-8 text. It looks like ${other}${commas ? ' with decimal commas' : ''}.`
    : `${file.name} looks like a table with decimal commas.`;
  useEffect(() => {
    announce(text);
  }, [doubt]);
  const action = html`<button type="button" class="button-primary" onClick=${() => read(decimal)}>
      Read it ${reading}
    </button>
    ${
      commas
        ? html`<button type="button" class="button" onClick=${() => read('.')}>
          Keep numbers with commas as text
        </button>`
        : null
    }`;
  return html`<${Notice} kind="warn" action=${action}>${text} For example, it then contains “${example}”.<//>`;
}

/** @param {{studio: Studio | null}} props */
function Upload({ studio }) {
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState('');
  const [doubt, setDoubt] = useState(/** @type {Doubt | null} */ (null));
  const [sent, setSent] = useState(/** @type {{name: string, fraction: number} | null} */ (null));
  const control = useRef(/** @type {AbortController | null} */ (null));
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const limits = studio?.limits;
  useEffect(() => () => control.current?.abort(), []);

  /** @param {File | undefined} file @param {Record<string, string>} [format] */
  const take = async (file, format = {}) => {
    if (!file) return;
    const why = objection(file, limits);
    setProblem(why);
    setDoubt(null);
    if (why) return;
    control.current = new AbortController();
    setSent({ name: file.name, fraction: 0 });
    try {
      const report = (/** @type {number} */ fraction) => setSent({ name: file.name, fraction });
      go(await upload('/api/tables', { file, ...format }, report, control.current.signal));
    } catch (error) {
      setSent(null);
      if (error instanceof ApiError && error.code === 'text_format') {
        const { encoding, decimal, example } = error.fields;
        setDoubt({ file, encoding, decimal, example });
      } else if (!(error instanceof DOMException)) setProblem(sentence(error));
    }
  };
  /** @param {DragEvent} event */
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (!sent) take(event.dataTransfer?.files[0]);
  };
  /** @param {DragEvent} event */
  const hover = (event) => {
    event.preventDefault();
    setOver(true);
  };
  const busy = sent
    ? html`<p><strong>${sent.name}</strong></p>
        <div class="drop-bar"><${Bar} done=${sent.fraction} total=${1} label=${`Uploading ${sent.name}`} /></div>
        <p class="muted small" role="status">
          ${sent.fraction < 1 ? `Uploading, ${percent(sent.fraction, 0)}` : 'Uploaded. The studio is reading it.'}
        </p>
        <button type="button" class="button" onClick=${() => control.current?.abort()}>Cancel</button>`
    : html`<${Icon} name="upload" />
        <p><strong>Drop a table here</strong></p>
        <p class="muted small">
          CSV or Parquet, with a row for each sample and a column with its class.
          ${limits ? ` At most ${limitsText(limits)}.` : ''}
        </p>
        <button type="button" class="button" onClick=${() => input.current?.click()}>Choose a file</button>`;
  return html`<section class="card stack" aria-labelledby="own-head">
    <h2 id="own-head">Your own table</h2>
    <div
      class=${`drop ${over ? 'drop-over' : ''}`}
      onDragEnter=${hover}
      onDragOver=${hover}
      onDragLeave=${() => setOver(false)}
      onDrop=${drop}
    >
      ${busy}
      <input
        ref=${input}
        type="file"
        class="hidden"
        tabindex="-1"
        aria-label="Table to upload"
        accept=${ENDINGS.join(',')}
        onChange=${(/** @type {any} */ event) => {
          take(event.target.files[0]);
          event.target.value = '';
        }}
      />
    </div>
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    ${
      doubt
        ? html`<${Confirm}
          doubt=${doubt}
          read=${(/** @type {string} */ decimal) => take(doubt.file, { encoding: doubt.encoding, decimal })}
        />`
        : null
    }
  </section>`;
}

/** @param {BundledSet} set @param {string} words */
const fits = (set, words) =>
  `${set.name} ${set.about} ${set.classes.join(' ')}`.toLowerCase().includes(words.trim().toLowerCase());

/** @param {BundledSet} set */
const classesOf = (set) =>
  set.classes.length <= 4 ? set.classes.join(', ') : `${set.classes.length} classes`;

/** @param {{studio: Studio | null}} props */
function Bundled({ studio }) {
  const [words, setWords] = useState('');
  const [opening, setOpening] = useState('');
  const [problem, setProblem] = useState('');
  const sets = (studio?.sets ?? []).filter((set) => fits(set, words));
  /** @param {BundledSet} set */
  const open = async (set) => {
    setOpening(set.name);
    setProblem('');
    announce(`Opening ${set.name}`);
    try {
      go(await post('/api/tables/bundled', { name: set.name }));
    } catch (error) {
      setProblem(sentence(error));
      setOpening('');
    }
  };
  return html`<section class="card stack" aria-labelledby="sets-head">
    <div class="row">
      <h2 id="sets-head" class="grow">Sample data sets</h2>
      <div class="search">
        <${Icon} name="search" />
        <input
          type="search"
          placeholder="Search"
          aria-label="Search the data sets"
          value=${words}
          onInput=${(/** @type {any} */ event) => setWords(event.target.value)}
        />
      </div>
    </div>
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    ${!studio ? html`<${Spinner} />` : null}
    ${
      studio && sets.length === 0
        ? html`<${Empty} title="No data set found">No name or description contains “${words}”.<//>`
        : null
    }
    <ul class="sets">
      ${sets.map(
        (set) =>
          html`<li key=${set.name}>
            <button type="button" class="set" disabled=${opening !== ''} onClick=${() => open(set)}>
              <span class="set-name">${set.name}</span>
              <span class="set-size muted">${count(set.rows)} × ${count(set.columns)}</span>
              <span class="set-about muted">
                ${opening === set.name ? 'Opening…' : `${set.about.replace(/\.$/, '')} · ${classesOf(set)}`}
              </span>
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** Choose the table of the new dialog. @param {{studio: Studio | null}} props */
export function Choose({ studio }) {
  useEffect(() => {
    document.title = 'New dialog · Margrave';
  }, []);
  return html`<div class="start">
    <div class="start-head">
      <div>
        <h1>New dialog</h1>
        <p class="muted">First choose a table: rows with known classes.</p>
      </div>
      <a class="button" href="#/">Back to the dialogs</a>
    </div>
    <div class="choose">
      <${Upload} studio=${studio} />
      <${Bundled} studio=${studio} />
    </div>
  </div>`;
}
