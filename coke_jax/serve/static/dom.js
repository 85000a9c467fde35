// Small functions that create and fill elements.

import { toHash } from './question.js';

export const find = (id) => document.getElementById(id);

// Creates an element. `children` are elements or texts.
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// Creates an SVG element with attributes.
export function draw(name, attributes = {}, ...children) {
  const element =
    document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// Returns a link to a question.
// choose(entity, steps): called when the link is opened in this window.
function questionLink(properties, question, choose) {
  return make('a', {
    href: toHash(question), dir: 'auto',
    onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(question.entity, question.steps);
    },
    ...properties,
  });
}

// Returns a link that shows an entity.
export function entityLink(label, choose) {
  const link = questionLink(
    { className: 'entity' }, { entity: label, steps: [] }, choose);
  link.append(label);
  return link;
}

// Returns a link to the question of one step from an entity.
export function stepLink(entity, step, choose) {
  const link = questionLink(
    { className: 'relation', title: 'Ask for further answers' },
    { entity, steps: [step] }, choose);
  link.append(...breakable(arrow(step)));
  return link;
}

export const relationText = (text) =>
  make('span', { className: 'relation', dir: 'auto' }, ...breakable(text));

// Allows line breaks after the characters _ / . : in the name of a relation.
export const breakable = (text) => text.split(/(?<=[_/.:])/).flatMap(
  (part, index) => (index ? [make('wbr'), part] : [part]));

// Returns a tag with the split of a fact. Facts of train have no tag.
export const splitTag = (split) => (split && split !== 'train'
  ? ['\u00a0', make('span', { className: 'tag' }, split)] : []);

// Returns a fact as text with links to its entities.
export function describeFact([head, relation, tail], choose) {
  return make('span', {}, entityLink(head, choose), ' ',
    relationText(relation), ' ', entityLink(tail, choose));
}

// Returns a path as text with links. edges: as in `pathGraph`, with `split`.
export function describePath(edges, choose) {
  return make('span', {}, entityLink(edges[0].from, choose),
    ...edges.flatMap((edge) => [' ', relationText(arrow(edge)), ' ',
      entityLink(edge.to, choose),
      ...(edge.known ? splitTag(edge.split)
        : ['\u00a0', make('span', { className: 'tag new' }, 'new')])]));
}

// Returns a step as text: `borders →`, or `← borders` if it is backwards.
export const arrow = ({ relation, backwards }) =>
  (backwards ? `← ${relation}` : `${relation} →`);

// Returns the children with commas between them.
export const separated = (children) =>
  children.flatMap((child, index) => (index ? [', ', child] : [child]));

export const number = (value) => value.toLocaleString('en');

// Returns a probability in percent, with a non-breaking space.
export function percent(probability) {
  const value = 100 * probability;
  if (value > 99.9) return '> 99.9\u00a0%';
  if (value >= 9.5) return `${value.toFixed(value < 99 ? 0 : 1)}\u00a0%`;
  return value >= 0.1 ? `${value.toFixed(1)}\u00a0%` : '< 0.1\u00a0%';
}
