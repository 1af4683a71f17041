// The page of a dialog: its head, the matrix and the trail on the left, the panels as tabs on the right.
// @ts-check

import { ApiError, patch } from './api.js';
import {
  Boundary,
  Icon,
  Notice,
  Spinner,
  Tag,
  html,
  plural,
  sentence,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from './kit.js';
import { ChangedRows } from './changed_rows.js';
import { stepOf, useDialog, useFocus, useFrontier } from './dialog_state.js';
import { MatrixCard } from './matrix.js';
import { Training } from './start_training.js';
import { ReadOnly, Share } from './share.js';
import { Trail } from './trail.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').CellChoice} CellChoice */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {import('./types.js').Preview} Preview */
/** @typedef {import('./types.js').Reply} Reply */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').StepPair} StepPair */

/** @type {{id: string, name: string, load: () => Promise<any>, part: string, applies?: (dialog: Dialog) => boolean}[]} */
const TABS = [
  { id: 'frontier', name: 'Frontier', load: () => import('./frontier.js'), part: 'FrontierPanel' },
  {
    id: 'program',
    name: 'Program',
    load: () => import('./program.js'),
    part: 'ProgramPanel',
    applies: ({ kind }) => kind === 'program',
  },
  {
    id: 'members',
    name: 'Members',
    load: () => import('./members.js'),
    part: 'MembersPanel',
    applies: ({ members, read_only }) => members.length > 1 || !read_only, // readers of a link see no rows
  },
  { id: 'costs', name: 'Costs', load: () => import('./costs.js'), part: 'CostsPanel' },
  { id: 'certify', name: 'Certify & export', load: () => import('./accept.js'), part: 'AcceptPanel' },
];

/** The name of a tab; a program or a single classifier has no members to compare. @param {typeof TABS[number]} tab @param {Dialog} dialog */
const nameOf = (tab, dialog) => (tab.id === 'members' && dialog.members.length < 2 ? 'Rows' : tab.name);

/** The panel of a tab, loaded when it is first opened. @param {PanelProps & {tab: typeof TABS[number]}} props */
function Panel({ tab, dialog, act, shared }) {
  const [part, setPart] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(false);
  useEffect(() => {
    tab.load().then(
      (module) => setPart(() => module[tab.part] ?? module.default),
      () => setError(true),
    );
  }, [tab]);
  if (error)
    return html`<${Notice} kind="bad">This part of the page could not be loaded. Reload the page.<//>`;
  if (!part) return html`<${Spinner} />`;
  return html`<${part} dialog=${dialog} act=${act} shared=${shared} />`;
}

/** @param {PanelProps & {current: string, open: (id: string) => void}} props */
function Tabs({ dialog, act, shared, current, open }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const tabs = TABS.filter(({ applies }) => applies?.(dialog) ?? true);
  const tab = tabs.find(({ id }) => id === current) ?? tabs[0];
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const moves = /** @type {Record<string, number>} */ ({
      ArrowRight: 1,
      ArrowLeft: -1,
      Home: -tabs.length,
      End: tabs.length,
    });
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const at = tabs.indexOf(tab);
    const to =
      Math.abs(move) === 1 ? (at + move + tabs.length) % tabs.length : move < 0 ? 0 : tabs.length - 1;
    open(tabs[to].id);
    /** @type {HTMLElement | null | undefined} */ (
      list.current?.querySelector(`#tab-${tabs[to].id}`)
    )?.focus();
  };
  return html`<section class="tabs" aria-label="Views">
    <div class="tab-list" role="tablist" aria-label="Views" ref=${list} onKeyDown=${keys}>
      ${tabs.map(
        (one) =>
          html`<button
            key=${one.id}
            type="button"
            role="tab"
            id=${`tab-${one.id}`}
            class="tab"
            aria-selected=${one === tab}
            aria-controls="tab-panel"
            tabindex=${one === tab ? 0 : -1}
            onClick=${() => open(one.id)}
          >
            ${nameOf(one, dialog)}
          </button>`,
      )}
    </div>
    <div class="panel tab-panel" role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab.id}`} tabindex="0">
      <${Boundary} key=${tab.id} what=${`“${nameOf(tab, dialog)}”`}>
        <${Panel} key=${tab.id} tab=${tab} dialog=${dialog} act=${act} shared=${shared} />
      <//>
    </div>
  </section>`;
}

/** The title, which can be edited in place. @param {{dialog: Dialog, refresh: () => Promise<void>}} props */
function Title({ dialog, refresh }) {
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const [problem, setProblem] = useState('');
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const byKey = useRef(false);
  const open = draft !== null;
  useEffect(() => {
    if (open) field.current?.focus();
    else if (byKey.current) button.current?.focus();
    byKey.current = false;
  }, [open]);
  const keep = async () => {
    const title = draft?.trim();
    setDraft(null);
    if (!title || title === dialog.title) return;
    try {
      await patch(`/api/dialogs/${encodeURIComponent(dialog.id)}`, { title });
      setProblem('');
      await refresh();
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (event.key !== 'Enter' && event.key !== 'Escape') return;
    byKey.current = true; // removing the field also fires blur, which would save it again
    if (event.key === 'Enter') keep();
    else setDraft(null);
  };
  if (open) {
    return html`<input
      type="text"
      class="title-input"
      aria-label="Title"
      maxlength="200"
      value=${draft}
      ref=${field}
      onInput=${(/** @type {any} */ event) => setDraft(event.target.value)}
      onKeyDown=${keys}
      onBlur=${() => byKey.current || keep()}
    />`;
  }
  const heading = html`<h1 class="dialog-title" title=${dialog.title}>${dialog.title}</h1>`;
  if (dialog.read_only) return heading;
  return html`${heading}
    <button
      type="button"
      class="button-icon"
      aria-label="Rename"
      title="Rename"
      ref=${button}
      onClick=${() => setDraft(dialog.title)}
    >
      <${Icon} name="edit" />
    </button>
    ${problem ? html`<span class="bad small" role="alert">${problem}</span>` : null}`;
}

/** @param {{dialog: Dialog, busy: boolean}} props */
function Saved({ dialog, busy }) {
  if (dialog.read_only) return html`<${Tag}>Read-only view<//>`;
  if (busy)
    return html`<span class="saved muted"><span class="spinner-ring" aria-hidden="true"></span>Working</span>`;
  if (!dialog.saved) return html`<span class="saved warn">Not saved yet</span>`;
  return html`<span class="saved good"><${Icon} name="check" />Saved</span>`;
}

/** @param {{dialog: Dialog}} props */
function About({ dialog }) {
  const parts = [
    dialog.table?.name === dialog.title ? null : dialog.table?.name,
    dialog.state === 'ready' ? `${plural(dialog.n, 'row')} in the tuning set` : null,
    dialog.kind === 'program' ? 'a martingale program' : plural(dialog.members.length, 'member'),
  ];
  return html`<p class="muted small">${parts.filter(Boolean).join(' · ')}</p>`;
}

/**
 * Undo and redo by key, unless a field has the focus.
 * @param {Dialog | null} dialog @param {Omit<Act, "showRows" | "cell" | "showChanges">} act
 */
function useKeys(dialog, act) {
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const keys = (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || !dialog || act.busy) return;
      const target = /** @type {HTMLElement | null} */ (event.target);
      if (target?.closest('input:not([type=checkbox], [type=radio], [type=range]), textarea, select, dialog'))
        return;
      const key = event.key.toLowerCase();
      const redo = key === 'y' || (key === 'z' && event.shiftKey);
      if (key !== 'z' && !redo) return;
      event.preventDefault();
      if (redo && dialog.can_redo) act.redo();
      if (!redo && dialog.can_undo) act.undo();
    };
    window.addEventListener('keydown', keys);
    return () => window.removeEventListener('keydown', keys);
  }, [dialog, act]);
}

/** @param {Dialog} dialog */
const usualTab = ({ kind, read_only, accepted }) =>
  read_only && accepted.length ? 'certify' : kind === 'program' ? 'program' : 'frontier';

/**
 * A trained dialog: the matrix and the trail, and the panels as tabs.
 * @param {{dialog: Dialog, step: Step, reply: Reply | null, job: Job | null, act: Act, stop: () => void,
 *   tab: string, open: (id: string) => void}} props
 */
function Body({ dialog, step, reply, job, act, stop, tab, open }) {
  const { focus, setFocus } = useFocus(dialog);
  const frontier = useFrontier(dialog, focus);
  const [preview, setPreview] = useState(/** @type {Preview | null} */ (null));
  const [ratio, setRatio] = useState(/** @type {number | null} */ (null));
  // Only the frontier shows the preview, so a drag re-renders no other panel.
  const shownPreview = tab === 'frontier' ? preview : null;
  const shared = useMemo(
    () => ({ frontier, preview: shownPreview, focus, setFocus, ratio, setRatio }),
    [frontier, shownPreview, focus, setFocus, ratio],
  );
  const left = useMemo(
    () => dialog.read_only ? html`<${ReadOnly} dialog=${dialog} step=${step} />` : html`<div class="dialog-left">
      <${MatrixCard}
        dialog=${dialog}
        step=${step}
        reply=${reply}
        job=${job}
        act=${act}
        stop=${stop}
        frontier=${frontier.data}
        focus=${focus}
        setPreview=${setPreview}
        ratio=${ratio}
        setRatio=${setRatio}
      />
      <${Trail} dialog=${dialog} act=${act} />
    </div>`,
    [dialog, step, reply, job, act, stop, frontier.data, focus, ratio],
  );
  const right = useMemo(
    () => html`<${Tabs} dialog=${dialog} act=${act} shared=${shared} current=${tab} open=${open} />`,
    [dialog, act, shared, tab, open],
  );
  return html`<div class="dialog-body">${left}${right}</div>`;
}

/** A dialog; `share`: the key of the read-only link that leads to it, "" for its owner. @param {{id: string, share: string, tab: string}} props */
export function DialogPage({ id, share, tab }) {
  const held = useDialog(id);
  const { dialog, error, job, reply, problem, note, stop, forget } = held;
  const [cell, setCell] = useState(/** @type {CellChoice | null} */ (null));
  const [changes, setChanges] = useState(/** @type {StepPair | null} */ (null));
  const choose = useCallback(
    (/** @type {string} */ to) =>
      location.replace(`#/${[...(share ? ['s', id, share] : ['d', id]), to].map(encodeURIComponent).join('/')}`),
    [id, share],
  );
  const open = useCallback(
    (/** @type {string} */ to) => {
      setCell(null); // a tab that the user opens does not scroll to the rows of a cell
      choose(to);
    },
    [choose],
  );
  const act = useMemo(
    () => ({
      ...held.act,
      busy: held.act.busy || dialog?.read_only === true,
      cell,
      showRows: (/** @type {CellChoice} */ chosen) => {
        setCell({ ...chosen });
        choose('members');
      },
      showChanges: (/** @type {StepPair} */ pair) => setChanges({ ...pair }),
    }),
    [held.act, dialog?.read_only, cell, choose],
  );
  useKeys(dialog, held.act);
  useEffect(() => {
    if (dialog) document.title = `${dialog.title} · Margrave`;
  }, [dialog?.title]);

  if (!dialog) {
    if (!error) return html`<${Spinner} label="Opening the dialog" />`;
    const gone = error instanceof ApiError && error.status === 404;
    const back = share ? null : html`<a class="button" href="#/">All dialogs</a>`;
    return html`<${Notice} kind=${gone ? 'warn' : 'bad'} title=${gone ? 'There is no such dialog.' : ''} action=${back}>
      ${gone ? 'It may have been deleted, or the address is incomplete.' : error.message}
    <//>`;
  }
  const step = stepOf(dialog, dialog.position);
  const useful = dialog.accepted.filter((one) => !one.useless.length);
  return html`<div class=${dialog.read_only ? 'dialog read-only' : 'dialog'}>
    <div class="dialog-head">
      <div class="grow">
        <div class="dialog-head-title"><${Title} dialog=${dialog} refresh=${held.act.refresh} /></div>
        <${About} dialog=${dialog} />
      </div>
      ${
        useful.length
          ? html`<${Tag} kind="good">${plural(useful.length, 'certified model')}<//>`
          : dialog.accepted.length
            ? html`<${Tag} kind="warn">certified, but useless<//>`
            : null
      }
      <${Saved} dialog=${dialog} busy=${act.busy} />
      ${dialog.state === 'ready' && !dialog.read_only ? html`<${Share} dialog=${dialog} refresh=${held.act.refresh} />` : null}
    </div>
    ${
      job?.restarted
        ? html`<div class="dialog-problem">
          <${Notice} kind="warn">The studio was restarted; the job starts again.<//>
        </div>`
        : null
    }
    ${
      problem || note
        ? html`<div class="dialog-problem">
          <${Notice}
            kind=${problem ? 'bad' : 'info'}
            action=${html`<button type="button" class="button" onClick=${forget}>Close</button>`}
          >
            ${problem || note}
          <//>
        </div>`
        : null
    }
    ${
      dialog.state !== 'ready' || !step
        ? html`<${Training} dialog=${dialog} job=${job} refresh=${held.act.refresh} />`
        : html`<${Body}
          key=${dialog.id}
          dialog=${dialog}
          step=${step}
          reply=${reply}
          job=${job}
          act=${act}
          stop=${stop}
          tab=${tab || usualTab(dialog)}
          open=${open}
        />`
    }
    ${
      changes && dialog.state === 'ready'
        ? html`<${ChangedRows} key=${id} dialog=${dialog} pair=${changes} close=${() => setChanges(null)} />`
        : null
    }
  </div>`;
}
