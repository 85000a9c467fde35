// The tabs about the chosen entity: facts, suspicious facts, map.

import { send } from './api.js';
import {
  arrow, breakable, describeFact, entityLink, find, make, number, separated,
  splitTag, stepLink,
} from './dom.js';
import { legendSign, pointMap } from './point_map.js';
import { tabs } from './tabs.js';

const PAGE = 100; // number of facts that are loaded at a time
const AUDITED = 20; // number of least plausible facts that are loaded

// Returns a function that shows an entity. Each tab is loaded when it is opened.
// choose(entity, steps): starts a question.
export function entityPanel({ choose, report }) {
  let entity = '';
  let shown = 'facts';
  const loaded = new Set();

  async function load() {
    const name = shown;
    if (!entity || loaded.has(name)) return;
    loaded.add(name);
    const place = find(name);
    place.replaceChildren(make('p', { className: 'quiet' }, 'Loading …'));
    const asked = entity;
    try {
      const children = await loaders[name](asked, choose, report);
      if (asked === entity) place.replaceChildren(...children);
    } catch (error) {
      if (asked !== entity) return;
      loaded.delete(name);
      place.replaceChildren();
      report(error, load);
    }
  }

  tabs(find('tabs'), (name) => {
    shown = name;
    load();
  });
  return (label) => {
    find('about-entity').hidden = !label;
    if (label === entity) return;
    entity = label;
    loaded.clear();
    find('entity-title').replaceChildren(make('bdi', {}, label));
    load();
  };
}

const loaders = {
  async facts(entity, choose, report) {
    const forwards = make('dl', { className: 'facts' });
    const list = make('dl', { className: 'facts' });
    const more = make('button', { type: 'button' }, 'Show more');
    const counted = make('p', { className: 'quiet' });
    const groups = new Map();
    let offset = 0;

    function groupOf(step) {
      const name = arrow(step);
      if (!groups.has(name)) {
        const labels = make('dd');
        groups.set(name, labels);
        // Facts with the entity as head come first.
        const place = step.backwards ? list : forwards;
        place.append(make('dt', {}, stepLink(entity, step, choose)), labels);
      }
      return groups.get(name);
    }

    async function next() {
      const found = await send('facts', { entity, offset, limit: PAGE });
      offset += found.facts.length;
      for (const { fact, known_in: split } of found.facts) {
        const [head, relation, tail] = fact;
        const backwards = head !== entity;
        const labels = groupOf({ relation, backwards });
        if (labels.childNodes.length) labels.append(', ');
        labels.append(entityLink(backwards ? head : tail, choose),
          ...splitTag(split));
      }
      counted.textContent = offset < found.total
        ? `${number(offset)} of ${number(found.total)} known facts`
        : `${number(found.total)} known fact${found.total === 1 ? '' : 's'}`;
      more.hidden = offset >= found.total;
    }
    const nextOrReport = () => next().catch(
      (error) => report(error, nextOrReport));
    more.addEventListener('click', nextOrReport);
    await next();
    return [counted, forwards, list, more];
  },

  async suspicious(entity, choose) {
    const { facts } = await send('audit', { entity, top: AUDITED });
    const shown = facts.filter((one) => one.tail_rank > 1 || one.head_rank > 1);
    if (!shown.length) {
      return [make('p', { className: 'quiet' }, facts.length
        ? 'None: in each known fact, the head and the tail have rank 1.'
        : 'This entity has no known facts.')];
    }
    return [
      make('p', { className: 'quiet' },
        'Known facts for which the model ranks other entities higher. The '
        + 'least plausible come first. Many of these facts are correct.'),
      make('ul', { className: 'lines' }, ...shown.map((one) => make('li', {},
        describeFact(one.fact, choose), ...splitTag(one.known_in),
        ...side('head', one.fact[0], one.head_rank, one.expected_heads, choose),
        ...side('tail', one.fact[2], one.tail_rank, one.expected_tails, choose),
      ))),
    ];
  },

  async map(entity, choose) {
    const found = await send('map', { entity });
    if (found.points.length < 2) {
      return [make('p', { className: 'quiet' },
        'This entity has too few training facts for a map.')];
    }
    const names = found.points.map(({ fact, side: place }) => arrow(
      { relation: fact[1], backwards: place === 'tail' }));
    const groups = [...new Set(names)].map((name) => ({
      name, points: found.points.filter((_, index) => names[index] === name),
    })).sort((one, other) => other.points.length - one.points.length);
    const points = groups.flatMap((group, index) => group.points.map(
      (point) => ({ ...point, group: index })));
    const details = make('ul', { className: 'lines' });
    const show = (some) => details.replaceChildren(...some.map(
      ({ fact }) => make('li', {}, describeFact(fact, choose))));
    const { picture, showGroup } = pointMap(points, (point) => show([point]));
    const [first, second] = found.explained.map(
      (share) => `${(100 * share).toFixed(0)}\u00a0%`);
    const legend = make('ul', { className: 'choices' });
    const buttons = groups.map((group, index) => make('button', {
      type: 'button', ariaPressed: 'false',
      onclick: (event) => {
        const pressed = event.currentTarget.ariaPressed !== 'true';
        for (const one of buttons) one.ariaPressed = 'false';
        event.currentTarget.ariaPressed = String(pressed);
        showGroup(pressed ? index : null);
        show(pressed ? group.points : []);
      },
    }, legendSign(index), ...breakable(group.name), ' ',
    make('small', {}, number(group.points.length))));
    legend.append(...buttons.map((one) => make('li', {}, one)));
    return [
      make('p', { className: 'quiet' },
        'Each point is the vector of this entity in one training fact. Similar '
        + `vectors are near each other. The axes show ${first} and ${second} `
        + 'of the variance. Choose a relation or a point to see its facts.'),
      picture, legend, details,
    ];
  },
};

// Describes the rank of an entity of a suspicious fact, unless the rank is 1.
function side(name, label, rank, expected, choose) {
  if (rank <= 1) return [];
  return [make('div', { className: 'quiet' },
    make('bdi', {}, label), ` has rank ${rank} as ${name}`,
    ...(expected.length
      ? [`; the best new ${name}s: `, ...separated(expected.map(
        (one) => entityLink(one, choose)))] : []))];
}
