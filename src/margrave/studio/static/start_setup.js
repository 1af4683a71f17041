// A new dialog, second page: the table, the target, the model, the split, and Train.
// @ts-check

import { ApiError, get, post, query } from './api.js';
import {
  Notice,
  Spinner,
  html,
  plural,
  sentence,
  useCallback,
  useDebounced,
  useEffect,
  useLoad,
  useMemo,
  useState,
} from './kit.js';
import { Columns, Findings, Preview } from './start_columns.js';
import { PartsBar, SupportList } from './start_parts.js';
import { Guarantee } from './start_plan.js';
import { MOST_LEVELS, More, Steered, Target } from './start_steer.js';

/** @typedef {import('./start_steer.js').Change} Change */
/** @typedef {import('./start_steer.js').Choices} Choices */
/** @typedef {import('./types.js').Classes} Classes */
/** @typedef {import('./types.js').Plan} Plan */
/** @typedef {import('./types.js').PlanRequest} PlanRequest */
/** @typedef {import('./types.js').Studio} Studio */
/** @typedef {import('./types.js').Table} Table */

const REST_MS = 300;
const NEXT =
  'Next, the page shows the confusion matrix of the trained model. There you limit the errors that you cannot tolerate, see what that costs, and certify the model that you choose.';

/** @type {Choices} */
const USUAL = {
  target: '',
  positive: null,
  drop: [],
  group: null,
  time: null,
  certify: 'auto',
  duplicates: 'auto',
  confidence: 0.95,
  kind: 'committee',
  guarantee: null,
  members: null,
  levels: 5,
  seed: 0,
  title: null,
};

/** The choices that decide the split of the rows. @param {Choices} choices @returns {PlanRequest} */
function planOf({ target, positive, drop, group, time, certify, duplicates, confidence, kind, guarantee, seed }) {
  return { target, positive, drop, group, time, certify, duplicates, confidence, kind, guarantee, seed };
}

/**
 * The plan for the choices, some time after the last change of them: planning for a guarantee takes about a second.
 * @param {Table} table @param {Choices} choices @param {string} blocked
 * @returns {{data: Plan | null, error: Error | null, loading: boolean}} `loading` also until the request is sent
 */
function usePlan(table, choices, blocked) {
  const now = JSON.stringify(planOf(choices));
  const request = useDebounced(now, REST_MS);
  const plan = useLoad(
    async (signal) =>
      choices.target && !blocked
        ? /** @type {Plan} */ (await post(`/api/tables/${encodeURIComponent(table.id)}/plan`, JSON.parse(request), signal))
        : null,
    [request, blocked],
  );
  return { ...plan, loading: plan.loading || request !== now };
}

/** @param {Choices} choices @param {number} nMembers */
function objection(choices, nMembers) {
  if (!choices.target) return 'Choose the column with the classes.';
  const chosen = choices.members?.length ?? nMembers;
  if (choices.kind === 'committee' && chosen === 0) return 'A committee needs at least one member.';
  const { levels } = choices;
  if (choices.kind === 'program' && !(levels >= 1 && levels <= MOST_LEVELS)) {
    return `A program starts with 1 to ${MOST_LEVELS} levels.`;
  }
  return '';
}

/**
 * The default members depend on the number of rows, so they are not counted here.
 * @param {Choices} choices @param {Table} table
 */
function whatIsTrained({ kind, levels, members }, table) {
  const rows = plural(table.rows, 'row');
  if (kind === 'program') return `A program of ${plural(levels, 'level')}, ${rows}`;
  return members ? `${plural(members.length, 'member')}, ${rows}` : `Default members for ${rows}`;
}

/**
 * The summary beside the choices: the split, the supported limits, and the button.
 * @param {{table: Table, choices: Choices, change: Change, blocked: string, plan: ReturnType<typeof usePlan>}} props
 */
function Summary({ table, choices, change, blocked, plan }) {
  const [problem, setProblem] = useState('');
  const [sending, setSending] = useState(false);
  const train = async () => {
    setSending(true);
    setProblem('');
    try {
      const { dialog } = await post('/api/dialogs', { ...choices, table: table.id });
      location.hash = `#/d/${encodeURIComponent(dialog.id)}`;
    } catch (error) {
      setProblem(sentence(error));
      setSending(false);
    }
  };
  const { data, error } = plan;
  const replies = error instanceof ApiError && error.code === 'many_copies' ? error.fields.choices : [];
  return html`<aside class="card stack setup-summary" aria-label="Summary">
    <h2>How the rows are split</h2>
    ${
      error
        ? html`<${Notice} kind="warn">
          <div class="stack">
            <p>${error.message}</p>
            ${
              replies.length
                ? html`<div class="row">
                    ${replies.map(
                      (/** @type {"near" | "independent"} */ duplicates) =>
                        html`<button type="button" class="button button-small" onClick=${() => change({ duplicates })}>
                          ${duplicates === 'near' ? 'Count copies once' : 'Count each row'}
                        </button>`,
                    )}
                  </div>
                  ${
                    replies.includes('near') && !choices.time
                      ? html`<p class="small">The column of rows that belong together is among the options below.</p>`
                      : null
                  }`
                : null
            }
          </div>
        <//>`
        : null
    }
    ${
      data && !plan.error
        ? html`<div class="stack" aria-busy=${plan.loading}>
          <${PartsBar} parts=${data.parts} kind=${choices.kind} />
          <${SupportList} support=${data.support} confidence=${choices.confidence} />
          ${
            data.used_up
              ? html`<${Notice} kind="warn" title="The certification rows of this table are used up.">
                An earlier guarantee has used them. You can train and steer a model, but another certificate needs new
                labelled rows.
              <//>`
              : null
          }
          ${data.remarks.map((remark) => html`<p class="small muted">${remark}</p>`)}
        </div>`
        : null
    }
    ${!data && !plan.error && plan.loading ? html`<${Spinner} label="Splitting the rows" />` : null}
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    <p class="small">${NEXT}</p>
    <button
      type="button"
      class="button-primary train"
      disabled=${Boolean(blocked) || sending || plan.error !== null}
      onClick=${train}
    >
      ${sending ? 'Starting…' : 'Train'}
    </button>
    <p class="small muted">
      ${blocked || whatIsTrained(choices, table)}
    </p>
  </aside>`;
}

/** @param {{table: Table, kind: Choices["kind"], studio: Studio | null}} props */
function Form({ table, kind, studio }) {
  const [choices, setChoices] = useState({ ...USUAL, kind, target: table.target ?? '' });
  const change = useCallback(
    (/** @type {Partial<Choices>} */ some) => setChoices((now) => ({ ...now, ...some })),
    [],
  );
  const path = `/api/tables/${encodeURIComponent(table.id)}/classes`;
  const { data, error, loading } = useLoad(
    async (signal) =>
      choices.target
        ? /** @type {Classes} */ (await get(query(path, { target: choices.target }), signal))
        : null,
    [choices.target],
  );
  useEffect(() => {
    if (data) change({ positive: data.positive });
  }, [data]);
  /** @param {string} name */
  const toggle = (name) =>
    change({
      drop: choices.drop.includes(name)
        ? choices.drop.filter((other) => other !== name)
        : [...choices.drop, name],
    });
  const roles = useMemo(() => {
    /** @type {Record<string, string>} */
    const found = {};
    if (choices.group) found[choices.group] = 'group';
    if (choices.time) found[choices.time] = 'time';
    return found;
  }, [choices.group, choices.time]);
  const members = studio?.members ?? [];
  const unfit = error && !loading ? error.message : '';
  const blocked =
    unfit || objection(choices, members.length) || (loading || !data ? 'Reading the classes' : '');
  const plan = usePlan(table, choices, blocked);
  return html`<div class="setup">
    <div class="stack">
      <section class="card stack" aria-labelledby="table-head">
        <div class="row">
          <h2 id="table-head" class="grow">${table.name}</h2>
          <span class="muted small">${plural(table.rows, 'row')}, ${plural(table.columns.length, 'column')}</span>
        </div>
        <${Preview} table=${table} />
        <${Findings} findings=${unfit ? [] : data?.findings ?? []} choices=${choices} change=${change} toggle=${toggle} />
        <${Columns} table=${table} target=${choices.target} drop=${choices.drop} roles=${roles} toggle=${toggle} />
      </section>
      <${Target} table=${table} choices=${choices} change=${change} classes=${unfit ? null : data} problem=${unfit} />
      <${Guarantee} choices=${choices} change=${change} plan=${plan.error ? null : plan.data} loading=${plan.loading} />
      <${Steered} choices=${choices} change=${change} members=${members} />
      <${More} table=${table} choices=${choices} change=${change} />
    </div>
    <${Summary} table=${table} choices=${choices} change=${change} blocked=${blocked} plan=${plan} />
  </div>`;
}

/**
 * The second page of a new dialog.
 * @param {{id: string, kind: string | undefined, studio: Studio | null}} props  `kind`: "program", or undefined for a committee
 */
export function Setup({ id, kind, studio }) {
  const { data, error } = useLoad((signal) => get(`/api/tables/${encodeURIComponent(id)}`, signal), [id]);
  useEffect(() => {
    document.title = 'New dialog · Margrave';
  }, []);
  const missing = error instanceof ApiError && error.status === 404;
  const back = html`<a class="button" href="#/new">Choose a table</a>`;
  return html`<div class="start start-wide">
    <div class="start-head">
      <div>
        <h1>New dialog</h1>
        <p class="muted">Check the choices, then train.</p>
      </div>
      <a class="button" href="#/new">Another table</a>
    </div>
    ${
      error && !data
        ? html`<${Notice} kind="bad" action=${back}>${missing ? 'This table no longer exists.' : error.message}<//>`
        : null
    }
    ${!data && !error ? html`<${Spinner} />` : null}
    ${data ? html`<${Form} table=${data} kind=${kind === 'program' ? kind : USUAL.kind} studio=${studio} />` : null}
  </div>`;
}
