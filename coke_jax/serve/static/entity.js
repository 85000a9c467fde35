// What is known about the chosen entity: facts, suspicious facts, map.

import { send } from './api.js';
import { describeFact, draw, find, make } from './dom.js';
import { groupColor, pointMap } from './pictures.js';

const PAGE = 50;
const SECTIONS = ['facts', 'suspicious', 'map'];

// Returns a function that shows an entity. Sections are loaded when opened.
export function entityPanel({ choose, report }) {
  let entity = '';
  const loaded = new Set();

  async function load(name) {
    if (!entity || loaded.has(name) || !find(name).open) return;
    loaded.add(name);
    const place = find(name).querySelector('div');
    place.textContent = 'Loading …';
    const asked = entity;
    try {
      const shown = await loaders[name](asked, choose);
      if (asked === entity) place.replaceChildren(...shown);
    } catch (error) {
      if (asked !== entity) return;
      loaded.delete(name);
      place.textContent = '';
      report(error);
    }
  }

  for (const name of SECTIONS) {
    find(name).addEventListener('toggle', () => load(name));
  }
  return (label) => {
    entity = label;
    loaded.clear();
    find('about-entity').hidden = false;
    for (const name of SECTIONS) {
      find(name).querySelector('div').textContent = '';
      load(name);
    }
  };
}

const loaders = {
  async facts(entity, choose) {
    const list = make('ul', { className: 'facts' });
    const more = make('button', { type: 'button' }, 'Show more');
    const counted = make('p', { className: 'quiet' });
    let offset = 0;
    async function next() {
      const found = await send('facts', { entity, offset, limit: PAGE });
      offset += found.facts.length;
      list.append(...found.facts.map((one) => make('li', {},
        describeFact(one.fact, choose), ' ',
        make('span', { className: 'tag' }, one.known_in))));
      counted.textContent = `${offset} of ${found.total} facts`;
      more.hidden = offset >= found.total;
    }
    more.addEventListener('click', next);
    await next();
    return [counted, list, more];
  },

  async suspicious(entity, choose) {
    const { facts } = await send('audit', { entity, top: 10 });
    if (!facts.length) return [make('p', {}, 'There are no known facts.')];
    return [
      make('p', { className: 'quiet' },
        'The known facts of this entity that the model considers least '
        + 'plausible, the least plausible first. Most of them can be right.'),
      make('ul', { className: 'facts' }, ...facts.map((one) => make('li', {},
        describeFact(one.fact, choose), ' ',
        make('span', { className: 'tag' }, one.known_in),
        make('div', { className: 'quiet' },
          `rank of the tail ${one.tail_rank}, of the head ${one.head_rank}`),
        expected('Expected as tail: ', one.expected_tails, choose),
        expected('Expected as head: ', one.expected_heads, choose)))),
    ];
  },

  async map(entity) {
    const found = await send('map', { entity });
    if (found.points.length < 2) {
      return [make('p', {}, 'There are too few known facts for a map.')];
    }
    const count = new Map();
    const names = found.points.map((point) =>
      (point.side === 'head' ? `${point.fact[1]} →` : `← ${point.fact[1]}`));
    for (const name of names) count.set(name, (count.get(name) || 0) + 1);
    const groups = [...count.keys()].sort(
      (one, other) => count.get(other) - count.get(one));
    const points = found.points.map((point, index) => ({
      ...point, group: groups.indexOf(names[index]),
      text: point.fact.join(' '),
    }));
    const [first, second] = found.explained.map(
      (share) => `${(100 * share).toFixed(0)} %`);
    return [
      make('p', { className: 'quiet' },
        'Each point is a known fact: the hidden state of the entity in it. '
        + `The two directions show ${first} and ${second} of the variance.`),
      pointMap(points),
      make('ul', { className: 'legend' }, ...groups.map((name, group) =>
        make('li', {}, draw('svg', { viewBox: '0 0 10 10', 'aria-hidden': true },
          draw('circle', { cx: 5, cy: 5, r: 5, fill: groupColor(group) })),
        `${name} (${count.get(name)})`))),
    ];
  },
};

function expected(title, labels, choose) {
  if (!labels.length) return '';
  const buttons = labels.flatMap((label, index) => [index ? ', ' : '',
    make('button', { className: 'entity', type: 'button',
      onclick: () => choose(label) }, label)]);
  return make('div', { className: 'quiet' }, title, ...buttons);
}
