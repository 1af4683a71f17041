// The records of the JSON API, as types for the editor and for `tsc --checkJs`. No code.
// @ts-check

/** @typedef {string | number | boolean} Label */

/**
 * Rows are the true classes; columns are the predicted classes in the same order, then the rejected.
 * @typedef {{classes: Label[], positive: Label | null, counts: number[][]}} Matrix
 */

/**
 * A changed cell; `predicted` is the predicted class, null for rejected.
 * @typedef {{true: Label, predicted: Label | null, before: number, after: number}} Change
 */

/**
 * @typedef {{train: number, tune: number, certify: number, unused: number, copies: number,
 *   near_copies: number}} Parts
 */

/**
 * The smallest limit, in percent, that the certification set of a class supports.
 * @typedef {{label: Label, n: number, least: number}} Support
 */

/** @typedef {{name: string, rows: number, columns: number, classes: string[], about: string}} BundledSet */

/** @typedef {{name: string, about: string}} MemberKind */

/** @typedef {{upload_bytes: number, rows: number, columns: number, jobs_waiting: number}} Limits */

/**
 * @typedef {{version: string, shared: boolean, limits: Limits, sets: BundledSet[],
 *   members: MemberKind[], onnx: boolean}} Studio
 */

/**
 * @typedef {{name: string, kind: string, why: string, distinct: number, missing: number,
 *   examples: string[]}} Column
 */

/**
 * @typedef {{id: string, name: string, rows: number, target: string | null, columns: Column[],
 *   preview: {columns: string[], rows: string[][]}}} Table
 */

/** A column that should probably not be an ordinary feature. @typedef {{column: string, kind: "entity" | "identifier" | "time", reason: string}} Finding */

/** @typedef {{classes: {label: Label, count: number}[], positive: Label | null, findings: Finding[]}} Classes */

/**
 * A certification set that a plan considers. `allowed_errors`: for each class with a limit, -1 if the rows are too few;
 * empty if the limits are not on the errors of a class. `more_rows`: those that the table lacks for it, by class.
 * @typedef {{certify_by_class: Record<string, number>, allowed_errors: Record<string, number>,
 *   recall: number, more_rows: Record<string, number>}} SplitOption
 */

/**
 * The certification set that is planned for a guarantee. `recall_without`: at the limit, with nothing set aside;
 * `further`: what more rows would give; `by_class`: the class proportions of the sets differ from those of the table.
 * @typedef {{guarantee: string, confidence: number, options: SplitOption[], chosen: SplitOption,
 *   recall_without: number, further: SplitOption[], by_class: boolean, seconds: number}} SplitPlan
 */

/**
 * @typedef {{parts: Parts, support: Support[], planned: SplitPlan | null, remarks: string[],
 *   used_up: boolean}} Plan
 */

/**
 * The body of POST plan; POST /api/dialogs takes more, see DialogRequest.
 * @typedef {{target: string, positive: Label | null, drop: string[], group: string | null,
 *   time: string | null, certify: "auto" | number | null, duplicates: "auto" | "group" | "near" | "independent",
 *   confidence: number, kind: "committee" | "program", guarantee: string | null, seed: number}} PlanRequest
 */

/**
 * @typedef {PlanRequest & {table: string, members: string[] | null, levels: number,
 *   title: string | null}} DialogRequest
 */

/**
 * Alternatives to limits that cannot be met together. `kept`: the limit that has priority, null for
 * the middle; `preference`: what to request for it.
 * @typedef {{text: string, kept: string | null, preference: string | null, confusion: Matrix,
 *   misses: {bound: string, samples: number}[]}} Alternative
 */

/** What to minimise within the limits: as the field "then" of a request, and as text. @typedef {{then: string, text: string}} GoalChoice */

/**
 * The false positives or false negatives that a bound allows, not rounded; `subject`: the word and the position of the
 * class, such as "fp(1)". A new bound on the same subject replaces it.
 * @typedef {{subject: string, error: "fp" | "fn", most: number}} ErrorLimit
 */

/**
 * `number` and `parent` are null in a reply that is not yet final; `goal` is one of the `goals`, null without limits.
 * @typedef {{number: number | null, parent: number | null, preference: string | null, goal: string | null, goals: GoalChoice[],
 *   already: boolean, sentences: string[], strategy: string, strategies: string[] | null, met: boolean, shortfall: number, binding: string | null,
 *   instead: string | null, seconds: number, n_candidates: number, cancelled: boolean, final: boolean,
 *   after: Matrix, before: Matrix, changes: Change[], fp: number | null, fn: number | null,
 *   limits: ErrorLimit[] | null, reject_percent: number, note: string | null, warnings: string[],
 *   alternatives: Alternative[]}} Reply
 */

/** @typedef {Reply & {number: number, parent: number | null}} Step */

/**
 * A cell of the matrix as a rate of its true class: on the tuning set, as expected (null if nothing is certified),
 * and the 90 % range of that.
 * @typedef {{true: Label, predicted: Label | null, tuning: number, rate: number | null, low: number | null,
 *   high: number | null}} ExpectedCell
 */

/**
 * `useful`: the probability of a certificate for a model that is not useless; `nearest`: the limits to request instead,
 * if it is below 0.5.
 * @typedef {{preference: string, confidence: number, route: string, probability: number, useful: number,
 *   cells: ExpectedCell[], nearest: string | null}} ExpectedCertificate
 */

/**
 * `useless`: why the model is useless although it is certified, empty if it is not; `errors`: what it costs, in numbers.
 * @typedef {{number: number, use_number: number, step: number, confidence: number, preference: string, goal: string, meaning: string, issued: string,
 *   guarantees: string[], useless: string[], confusion: Matrix, route: string, remarks: string[], text: string, errors: string,
 *   expected: ExpectedCertificate | null, onnx: boolean | null}} Accepted
 */

/** @typedef {{name: string, done: number, total: number, state: "done" | "running" | "waiting"}} MemberProgress */

/**
 * `provisional`: the matrix of so many finished members, while the others are trained.
 * @typedef {{done: number, total: number, text: string, members: MemberProgress[] | null,
 *   provisional: {members: number, confusion: Matrix} | null}} Progress
 */

/**
 * `restarted`: the process that ran it has ended, so that it begins again.
 * @typedef {{id: string, kind: "train" | "prefer" | "nodes" | "grow" | "accept", dialog: string,
 *   state: "waiting" | "running" | "done" | "failed" | "cancelled", ahead: number, restarted: boolean,
 *   progress: Progress | null, error: string | null, code: string | null,
 *   fields: Record<string, any> | null, reply: Reply | null, result: Record<string, any> | null}} Job
 */

/**
 * `link`: the address of its read-only view, null if it is not shared; `read_only`: this is that view.
 * @typedef {{id: string, title: string, table: {id: string, name: string} | null, target: string,
 *   kind: "committee" | "program", state: "training" | "ready" | "failed", error: string | null,
 *   classes: Label[], positive: Label | null, members: string[], parts: Parts | null,
 *   support: Support[], confidence: number, n: number, position: number, undone: number[],
 *   can_undo: boolean, can_redo: boolean, steps: Step[], accepted: Accepted[], left: string, used_up: boolean, opened: number | null,
 *   job: Job | null, saved: boolean, updated: string, link: string | null, read_only: boolean}} Dialog
 */

/**
 * @typedef {{id: string, title: string, table_name: string | null, kind: "committee" | "program",
 *   state: "training" | "ready" | "failed", n_steps: number, preference: string | null,
 *   met: boolean | null, n_accepted: number, n_useless: number, updated: string}} DialogLine
 */

/**
 * What a certificate will probably state, null if there can be none, and why there is none, null if there may be one.
 * @typedef {{error: string | null, code: string | null, fields: Record<string, any> | null,
 *   expected: ExpectedCertificate | null}} Guarantee
 */

/** @typedef {{true: Label, predicted: Label | null, to: number | string}} Edit */

/**
 * `after`: the matrix that a request would reach, null if the server does not preview it; `met`: it meets the limits.
 * @typedef {{preference: string | null, sentences: string[], error: string | null,
 *   code: string | null, fields: Record<string, any> | null, already: boolean,
 *   goal: string | null, goals: GoalChoice[], replaced: string[], after: Matrix | null, met: boolean | null}} Reading
 */

/** @typedef {{n_changed: number, n_only_first: number, n_only_second: number, changes: Change[]}} Comparison */

/** @typedef {{name: string, fp: number, fn: number, low: number, high: number | null}} Winner */

/**
 * `steps` of a curve: the steps from which a request tries its thresholds.
 * @typedef {{positive: Label, negative: Label | null, n_positive: number, n_negative: number,
 *   curves: {name: string, fp: number[], fn: number[], steps: number[]}[],
 *   best: {fp: number, fn: number, name: string}[], hull: Winner[]}} Frontier
 */

/**
 * @typedef {{winners: Winner[], prior: number, costs: [number, number], priors: [number, number]}} Winners
 */

/**
 * `n_by_votes` and `wrong_by_votes`: rows and errors by how many members agree with the prediction.
 * @typedef {{members: {name: string, weight: number, n_errors: number, fp: number | null,
 *     fn: number | null, accuracy: number}[],
 *   margins: {edges: number[], right: number[], wrong: number[]},
 *   disagreement: number[][], n_by_votes: number[], wrong_by_votes: number[]}} Members
 */

/**
 * @typedef {{row: number, true: Label, predicted: Label | null, certainty: number, votes: Label[],
 *   values: string[]}} Row
 */

/** @typedef {{total: number, columns: string[], rows: (Row | ChangedRow)[], members: string[]}} Rows */

/** A row that two steps predict differently. @typedef {Row & {before: Label | null, certainty_before: number}} ChangedRow */

/**
 * The counts are those of all pages.
 * @typedef {Rows & {n_changed: number, n_newly: {right: number, wrong: number, rejected: number}}} ChangedRows
 */

/** Two steps to compare. @typedef {{first: number, second: number}} StepPair */

/**
 * @typedef {{id: string, votes: number[], layer: number,
 *   kind: "learner" | "constant" | "frozen" | "empty" | "leaf", predicted: Label | null,
 *   sizes: number[], reach: number, advantages: (number | null)[], weak: boolean, confusion: Matrix,
 *   outcomes: number[][], tuned: string | null}} ProgramNode
 */

/** @typedef {{votes: number[], preference: string, before: Matrix, after: Matrix}} NodeEdit */

/**
 * `outcomes` of a node or an edge: the rows that pass, by their class and by what the end of their path predicts.
 * @typedef {{step: number, n_levels: number, classes: Label[], positive: Label | null, threshold: number,
 *   nodes: ProgramNode[],
 *   edges: {start: string, end: string, predicted: Label | null, flow: number[], outcomes: number[][]}[],
 *   edits: NodeEdit[], n_changed: number}} Program
 */

/**
 * The cell whose rows are shown; `rejected` for the last column.
 * @typedef {{true?: Label, predicted?: Label, rejected?: boolean}} CellChoice
 */

/**
 * The actions of a panel. `busy` while a job of this dialog runs. `prefer` requests limits in words (from
 * step `from`, by default from the current step) and resolves with the final job; `run` POSTs to a path
 * below /api/dialogs/ID, follows the job, refreshes the dialog and resolves with the final job (null if
 * the request was refused; its error is already shown). A read-only view is always busy.
 * @typedef {{busy: boolean,
 *   prefer: (wants: string[],
 *     options: {keep: boolean, from?: number | null, strategies?: string[] | null}) => Promise<Job | null>,
 *   goto: (step: number) => Promise<void>, undo: () => Promise<void>, redo: () => Promise<void>,
 *   run: (path: string, body: object) => Promise<Job | null>, refresh: () => Promise<void>,
 *   showRows: (cell: CellChoice) => void, cell: CellChoice | null,
 *   showChanges: (pair: StepPair) => void}} Act
 */

/**
 * The errors that the edited limits would lead to. `approximate`: found on the frontier, not by the server;
 * `reachable`: a point meets all limits, otherwise this is the nearest one.
 * @typedef {{fp: number, fn: number, approximate: boolean, reachable: boolean}} Preview
 */

/**
 * What the matrix and the panels of a dialog share. `focus`: the class whose false positives and false
 * negatives are counted; `preview`: null unless limits are being edited; `ratio`: the cost of a false negative, in false
 * positives, null until the user states it.
 * @typedef {{frontier: {data: Frontier | null, error: Error | null, loading: boolean, reload: () => void},
 *   preview: Preview | null, focus: Label, setFocus: (label: Label) => void, ratio: number | null,
 *   setRatio: (ratio: number | null) => void}} Shared
 */

/** @typedef {{dialog: Dialog, act: Act, shared: Shared}} PanelProps */

export {};
