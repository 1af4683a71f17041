// The drawing of a program: nodes in layers, edges, and a legend.
// @ts-check

import { useWidth } from './charts.js';
import { html, labelText, nameClass, predictedText, useLayoutEffect, useMemo, useState } from './kit.js';
import { keyOf, layout, neighbour } from './program_layout.js';
import { KINDS, nodeText, routeText, shortNames, sizesText } from './program_words.js';

/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */
/** @typedef {import('./program_layout.js').Placed} Placed */
/** @typedef {import('./program_layout.js').Drawn} Drawn */
/** @typedef {import('./program_words.js').Route} Route */

/** The outline of a kind of node about the origin. @param {ProgramNode["kind"]} kind @param {number} r */
function outline(kind, r) {
  if (kind === 'constant') return `M${-r} ${-r}H${r}V${r}H${-r}Z`;
  if (kind === 'frozen') {
    const half = r / 2;
    const high = r * 0.94;
    return `M${-r * 1.1} 0L${-half} ${-high}H${half}L${r * 1.1} 0L${half} ${high}H${-half}Z`;
  }
  if (kind === 'leaf') return `M${-r} ${-r}H${r}V${r * 0.35}L0 ${r * 1.2}L${-r} ${r * 0.35}Z`;
  return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
}

/**
 * The program, with all rows or the errors of a `route`; `chosen` is the key of the selected node.
 * @param {{program: Program, route: Route | null, chosen: string | null, onChoose: (key: string) => void}} props
 */
export function ProgramGraph({ program, route, chosen, onChoose }) {
  const [place, width] = useWidth();
  const { placed, drawn, width: wide, height, gap } = useMemo(
    () => layout(program, Math.max(width, 240), route),
    [program, width, route],
  );
  // A drawing that is wider than its container is scrolled to its middle, where the root is.
  useLayoutEffect(() => {
    if (place.current) place.current.scrollLeft = (wide - width) / 2;
  }, [wide, width]);
  const [focus, setFocus] = useState(/** @type {string | null} */ (null));
  const stop = placed.find((one) => keyOf(one.node) === (focus ?? chosen)) ?? placed[0];
  const names = namesOf(program, gap);

  /** @param {KeyboardEvent} event @param {Placed} at */
  const press = (event, at) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      onChoose(keyOf(at.node));
      return;
    }
    const next = neighbour(placed, drawn, at, event.key);
    if (!next) return;
    event.preventDefault();
    setFocus(keyOf(next.node));
    const found = place.current?.querySelector(`[data-node="${keyOf(next.node)}"]`);
    if (found instanceof SVGElement) found.focus();
  };

  return html`<div class="graph scroll-x" ref=${place}>
    ${width === 0
      ? null
      : html`<svg
          width=${wide}
          height=${height}
          viewBox=${`0 0 ${wide} ${height}`}
          role="group"
          aria-label="The program, layer by layer. Arrow keys move between nodes, Enter opens one."
        >
          ${drawn.map((edge) => html`<${Edge} drawn=${edge} program=${program} route=${route} />`)}
          ${placed.map((one) => html`<${Node}
            key=${keyOf(one.node)}
            one=${one}
            program=${program}
            route=${route}
            chosen=${keyOf(one.node) === chosen}
            stop=${one === stop}
            onChoose=${() => onChoose(keyOf(one.node))}
            onFocus=${() => setFocus(keyOf(one.node))}
            onKey=${(/** @type {KeyboardEvent} */ event) => press(event, one)}
          />`)}
          <g aria-hidden="true">
            ${placed.map((one) => html`<${Name} one=${one} name=${names(one.node)} side=${sideOf(program, one, wide)} />`)}
          </g>
        </svg>`}
  </div>`;
}

/** @param {string} text */
const clipped = (text) => (text.length > 9 ? `${text.slice(0, 8)}…` : text);

/** The names of predicted classes, short if there is little space. @param {Program} program @param {number} gap */
function namesOf(program, gap) {
  const short = shortNames(program.classes);
  const long = program.classes.map((label) => clipped(labelText(label)));
  return (/** @type {ProgramNode} */ node) => {
    if (node.predicted === null) return '';
    const crowded = node.kind === 'constant' && program.classes.length > 2;
    if (crowded && gap < 88) return '';
    return (crowded || gap < 64 ? short : long)[program.classes.indexOf(node.predicted)];
  };
}

/**
 * The side of a name: below, or beside the node if an edge leaves below. @param {Program} program
 * @param {Placed} one @param {number} wide @returns {-1 | 0 | 1}
 */
function sideOf(program, one, wide) {
  if (one.node.kind !== 'constant') return 0;
  return program.classes.length === 2 && one.x < wide / 2 ? -1 : 1;
}

/** The predicted class of a node without a learner. @param {{one: Placed, name: string, side: -1 | 0 | 1}} props */
function Name({ one, name, side }) {
  if (!name) return null;
  return html`<text
    class=${`graph-name graph-name-${['left', 'below', 'right'][side + 1]}`}
    x=${one.x + side * (one.r + 7)}
    y=${one.y + (side ? 4 : one.r * 1.2 + 12)}
  >
    ${name}
  </text>`;
}

/** @param {{drawn: Drawn, program: Program, route: Route | null}} props */
function Edge({ drawn, program, route }) {
  const { edge } = drawn;
  const empty = drawn.width === 0;
  return html`<path
    class=${empty ? 'graph-edge graph-edge-empty' : 'graph-edge'}
    d=${drawn.path}
    style=${empty ? {} : { stroke: drawn.stroke, strokeWidth: `${drawn.width}px` }}
  >
    <title>
      ${edge.predicted === null ? '' : `${predictedText(edge.predicted)}: `}${route
        ? routeText(program, route, edge.outcomes)
        : sizesText(program, edge.flow)}
    </title>
  </path>`;
}

/**
 * @param {{one: Placed, program: Program, route: Route | null, chosen: boolean, stop: boolean,
 *   onChoose: () => void, onFocus: () => void, onKey: (event: KeyboardEvent) => void}} props
 */
function Node({ one, program, route, chosen, stop, onChoose, onFocus, onKey }) {
  const { node, x, y, r, fill } = one;
  const text = `${nodeText(program, node)}${route ? ` ${routeText(program, route, node.outcomes)} pass here.` : ''}`;
  return html`<g
    class=${`graph-node graph-${node.kind}`}
    transform=${`translate(${x} ${y})`}
    role="button"
    tabindex=${stop ? 0 : -1}
    aria-label=${text}
    aria-pressed=${chosen}
    data-node=${keyOf(node)}
    onClick=${onChoose}
    onFocus=${onFocus}
    onKeyDown=${onKey}
  >
    <title>${text}</title>
    <circle class="graph-target" r=${Math.max(r + 3, 14)} />
    ${chosen ? html`<circle class="graph-chosen" r=${r + (node.weak ? 8 : 5)} />` : null}
    ${node.weak ? html`<circle class="graph-weak" r=${r + 4} />` : null}
    <path class="graph-shape" d=${outline(node.kind, r)} style=${{ fill: node.kind === 'empty' ? 'none' : fill }} />
    ${node.tuned ? html`<path class="graph-tuned" d=${`M${r * 0.45} ${-r - 1}l3 3 6 -7`} />` : null}
  </g>`;
}

/** What shapes, colours and widths mean. @param {{program: Program, route: Route | null}} props */
export function GraphLegend({ program, route }) {
  const kinds = /** @type {ProgramNode["kind"][]} */ (
    ['learner', 'constant', 'frozen', 'empty', 'leaf']
  ).filter((kind) => program.nodes.some((node) => node.kind === kind));
  return html`<ul class="legend">
    ${route
      ? html`<li><span class="key key-side key-error"></span>${route.name}</li>`
      : program.classes.map(
          (label, side) => html`<li>
            <span class="key key-side" style=${{ background: `var(--side-${side % 6})` }}></span>mostly ${nameClass(label)}
          </li>`,
        )}
    ${kinds.map((kind) => html`<li><${Sample} kind=${kind} />${KINDS[kind]}</li>`)}
    ${program.nodes.some((node) => node.weak) ? html`<li><${Sample} kind="learner" weak=${true} />weak</li>` : null}
    ${program.nodes.some((node) => node.tuned) ? html`<li><${Sample} kind="learner" tuned=${true} />tuned</li>` : null}
    <li class="muted">
      ${route
        ? `size, width and colour: the fraction of the ${route.name} that pass`
        : 'size and width: the largest fraction of a class that gets there'}
    </li>
  </ul>`;
}

/** @param {{kind: ProgramNode["kind"], weak?: boolean, tuned?: boolean}} props */
function Sample({ kind, weak = false, tuned = false }) {
  return html`<svg class=${`key-node graph-${kind}`} viewBox="-10 -10 20 20" aria-hidden="true">
    ${weak ? html`<circle class="graph-weak" r="8.5" />` : null}
    <path class="graph-shape" d=${outline(kind, weak ? 4.5 : 6)} />
    ${tuned ? html`<path class="graph-tuned" d="M1 -6l3 3 5 -6" />` : null}
  </svg>`;
}
