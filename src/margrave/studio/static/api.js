// The connection to the studio's server: requests, uploads, jobs, and whether it can be reached.
// @ts-check

/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Reply} Reply */

const RETRY_MS = 1000;
const UNREACHABLE = 'The studio cannot be reached. Nothing that was saved is lost.';

/** The key of a read-only link, which is sent with each request; null for the owner of a dialog. @type {string | null} */
let shareKey = null;

/** Read with the key of a read-only link from now on, or as the owner. @param {string | null} key */
export const readWith = (key) => {
  shareKey = key;
};

/** @returns {Record<string, string>} */
const keyHeader = () => (shareKey === null ? {} : { 'X-Margrave-Share': shareKey });

/** An error message of the server; status 0 if the server cannot be reached. */
export class ApiError extends Error {
  /** @param {string} message @param {number} status @param {string | null} [code] @param {Record<string, any>} [fields] */
  constructor(message, status, code = null, fields = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** Whether the server responds ("up"), does not ("down"), or needs the token ("locked"). */
export const link = {
  /** @type {"up" | "down" | "locked"} */
  state: 'up',
  /** @type {Set<(state: "up" | "down" | "locked", before: "up" | "down" | "locked") => void>} */
  listeners: new Set(),
  /**
   * Call `listener` at every change; returns a function that stops this.
   * @param {(state: "up" | "down" | "locked", before: "up" | "down" | "locked") => void} listener
   */
  watch(listener) {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  },
  /** @param {"up" | "down" | "locked"} state */
  set(state) {
    if (state === this.state) return;
    const before = this.state;
    this.state = state;
    for (const listener of [...this.listeners]) listener(state, before);
  },
};

/** @param {number} status @param {any} body */
function refusal(status, body) {
  const message = body && typeof body.error === 'string' ? body.error : null;
  const text = message ?? `The studio responded with an error (${status}).`;
  return new ApiError(text, status, body?.code, body?.fields ?? {});
}

/**
 * @param {string} method @param {string} path @param {any} [body] @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function request(method, path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: 'application/json', ...keyHeader() };
  if (method !== 'GET') headers['X-Margrave'] = '1';
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  let content = null;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      cache: 'no-store',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    content = text ? JSON.parse(text) : null;
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === 'AbortError') throw problem;
    if (response && problem instanceof SyntaxError) throw refusal(response.status, null);
    link.set('down');
    throw new ApiError(UNREACHABLE, 0);
  }
  link.set(response.status === 401 ? 'locked' : 'up');
  if (!response.ok) throw refusal(response.status, content);
  return content;
}

/** Ask the server whether it is there, without the token. */
export async function ping() {
  try {
    await fetch('favicon.svg', { method: 'HEAD', cache: 'no-store' });
    if (link.state === 'down') link.set('up');
  } catch {
    link.set('down');
  }
}

/** @param {string} path such as "/api/dialogs" @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = (path, signal) => request('GET', path, undefined, signal);

/** The content of a file for download. @param {string} path @returns {Promise<Blob>} */
export async function getFile(path) {
  let response;
  try {
    response = await fetch(path, { cache: 'no-store', headers: keyHeader() });
    if (response.ok) return await response.blob();
  } catch {
    link.set('down');
    throw new ApiError(UNREACHABLE, 0);
  }
  link.set(response.status === 401 ? 'locked' : 'up');
  throw refusal(response.status, await response.json().catch(() => null));
}

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const post = (path, body = {}, signal) => request('POST', path, body, signal);

/** @param {string} path @param {object} body @returns {Promise<any>} */
export const patch = (path, body) => request('PATCH', path, body);

/** @param {string} path @returns {Promise<any>} */
export const del = (path) => request('DELETE', path);

/** `path?a=1&b=2`, without values that are null, undefined or "". @param {string} path @param {Record<string, any>} values */
export function query(path, values) {
  const kept = Object.entries(values).filter(([, value]) => value != null && value !== '');
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Send a form with a file, and report the fraction (0 to 1) that has been sent.
 * @param {string} path @param {Record<string, string | File>} fields @param {(fraction: number) => void} report
 * @param {AbortSignal} [signal] @returns {Promise<any>}
 */
export function upload(path, fields, report, signal) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open('POST', path);
    sending.setRequestHeader('X-Margrave', '1');
    sending.upload.onprogress = (event) => {
      if (event.lengthComputable) report(event.loaded / event.total);
    };
    sending.onload = () => {
      let content = null;
      try {
        content = JSON.parse(sending.responseText);
      } catch {
        // The refusal below names the status.
      }
      link.set(sending.status === 401 ? 'locked' : 'up');
      if (sending.status >= 200 && sending.status < 300 && content) resolve(content);
      else reject(refusal(sending.status, content));
    };
    sending.onerror = () => {
      link.set('down');
      reject(new ApiError(UNREACHABLE, 0));
    };
    sending.onabort = () => reject(new DOMException('The upload was stopped.', 'AbortError'));
    signal?.addEventListener('abort', () => sending.abort());
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    sending.send(form);
  });
}

/**
 * Follow a job through its server-sent events until it ends, and reconnect if needed; each event is the whole job.
 * `end` is called once, with the final job, whose result is stored.
 * @param {string} id
 * @param {{job?: (job: Job) => void, reply?: (reply: Reply) => void, end?: (job: Job) => void}} handlers
 * @returns {() => void} stop following (the job itself continues)
 */
export function follow(id, { job, reply, end }) {
  const path = `/api/jobs/${encodeURIComponent(id)}`;
  /** @type {EventSource | null} */
  let source = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let over = false;
  let last = 'null'; // the last reply
  const stop = () => {
    over = true;
    clearTimeout(timer);
    source?.close();
  };
  /** @param {Job} last */
  const finish = (last) => {
    if (over) return;
    stop();
    end?.(last);
  };
  const check = async () => {
    try {
      const now = /** @type {Job} */ (await get(path));
      if (over) return;
      if (now.state === 'waiting' || now.state === 'running') open();
      else finish(now);
    } catch (problem) {
      if (over) return;
      if (problem instanceof ApiError && problem.status === 404) finish(forgotten(id));
      else timer = setTimeout(check, RETRY_MS);
    }
  };
  const open = () => {
    source = new EventSource(`${path}/events`);
    source.addEventListener('job', (event) => {
      const now = /** @type {Job} */ (JSON.parse(event.data));
      job?.(now);
      const text = JSON.stringify(now.reply);
      if (now.reply && text !== last) reply?.(now.reply);
      last = text;
    });
    source.addEventListener('end', (event) => finish(JSON.parse(event.data)));
    // The browser would retry by itself, but the page has to know that the server is unreachable.
    source.onerror = () => {
      if (over) return;
      source?.close();
      timer = setTimeout(check, RETRY_MS);
    };
  };
  open();
  return stop;
}

/** @param {string} id @returns {Job} */
function forgotten(id) {
  return {
    id,
    kind: 'prefer',
    dialog: '',
    state: 'failed',
    ahead: 0,
    restarted: false,
    progress: null,
    reply: null,
    error: 'The studio no longer has this request. Nothing that was saved is lost; try again.',
    code: null,
    fields: null,
    result: null,
  };
}
