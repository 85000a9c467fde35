// The reasons for an answer: paths of facts, and similar facts.

import { send } from './api.js';
import { describeFact, find, make, percent } from './dom.js';
import { pathGraph } from './pictures.js';

const DRAWN = 5; // paths in the picture
const DRAWN_NARROW = 3;

// Shows the reasons for an answer to a question.
export async function showReasons(question, answer, { choose, review }) {
  const single = question.steps.length === 1;
  const place = find('reasons');
  const title = `Reasons for ${answer.label}`;
  find('reasons-title').textContent = title;
  find('reasons-section').hidden = false;
  place.replaceChildren(make('p', { className: 'quiet' }, 'Loading …'));
  const children = single
    ? await explained(question, answer, choose)
    : await traced(question, answer, choose, review);
  // Another answer can have been opened meanwhile.
  if (find('reasons-title').textContent !== title) return;
  place.replaceChildren(...children);
}

async function explained(question, answer, choose) {
  const fact = factOf(question, answer);
  const found = await send('explain', { facts: [fact], top: 10, similar: 5 });
  const [explanation] = found.explanations;
  const paths = explanation.paths.map((path) => follow(fact[0], path.facts));
  const children = [];
  if (paths.length) {
    children.push(
      make('p', { className: 'quiet' },
        'Paths of known facts between both entities, the most probable first.'
        + (explanation.complete ? '' : ' Only a part of all paths was scored.')),
      picture(paths),
      make('ol', {}, ...explanation.paths.map((path) => make('li', {},
        ...separated(path.facts.map((one) => describeFact(one, choose))),
        ` (${percent(path.probability)})`))));
  } else {
    children.push(make('p', {},
      'No path of up to three known facts connects both entities.'));
  }
  if (explanation.similar.length) {
    children.push(
      make('p', { className: 'quiet' },
        'Known facts of this relation with the most similar entities:'),
      make('ul', {}, ...explanation.similar.map((one) => make('li', {},
        describeFact(one.fact, choose),
        ` (similarity ${one.similarity.toFixed(2)})`))));
  }
  return children;
}

async function traced(question, answer, choose, review) {
  const found = await send('trace', {
    entity: question.entity, steps: question.steps, answer: answer.label,
    top: 10,
  });
  const paths = found.paths.map((path) =>
    follow(question.entity, path.facts.map((one) => one.fact), path.facts));
  return [
    make('p', { className: 'quiet' },
      'Entities between both ends. Paths of known facts come first. Facts '
      + 'drawn with a broken line are predictions.'),
    picture(paths),
    make('ol', {}, ...found.paths.map((path) => make('li', {},
      ...separated(path.facts.map((one) => make('span', {},
        describeFact(one.fact, choose), ' ',
        one.known_in
          ? make('span', { className: 'tag' }, one.known_in)
          : make('span', {}, make('span', { className: 'tag new' }, 'new'), ' ',
            review.buttons(one.fact))))),
      ` (${percent(path.probability)})`))),
  ];
}

function picture(paths) {
  const width = Math.max(300, find('reasons').clientWidth || 600);
  const count = width < 560 ? DRAWN_NARROW : DRAWN;
  return pathGraph(paths.slice(0, count), width);
}

// Returns the edges of facts that lead on from an entity.
function follow(entity, facts, details = []) {
  let here = entity;
  return facts.map(([head, relation, tail], index) => {
    const detail = details[index];
    const backwards = detail ? detail.backwards : head !== here;
    const to = backwards ? head : tail;
    const edge = {
      from: here, to, relation, backwards,
      known: !detail || Boolean(detail.known_in),
    };
    here = to;
    return edge;
  });
}

export function factOf(question, answer) {
  const { relation, backwards } = question.steps[0];
  return backwards
    ? [answer.label, relation, question.entity]
    : [question.entity, relation, answer.label];
}

function separated(children) {
  return children.flatMap((child, index) => (index ? [', ', child] : [child]));
}
