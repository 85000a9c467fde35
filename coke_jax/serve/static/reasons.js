// The reasons for an answer: paths of facts, and similar facts.

import { send } from './api.js';
import { describeFact, describePath, make, percent } from './dom.js';
import { pathGraph } from './path_graph.js';

// Resolves to elements that show the reasons for an answer.
// width: the width of the picture in pixels. choose(entity): shows an entity.
export function reasonsFor(question, answer, { width, choose, review }) {
  return question.steps.length === 1
    ? explained(question, answer, width, choose)
    : traced(question, answer, width, choose, review);
}

async function explained(question, answer, width, choose) {
  const fact = factOf(question, answer);
  const found = await send('explain', { facts: [fact], top: 10, similar: 5 });
  const [explanation] = found.explanations;
  const paths = explanation.paths.map((path) => {
    const facts = question.steps[0].backwards
      ? [...path.facts].reverse() : path.facts;
    return { edges: follow(question.entity, facts), ...path };
  });
  const children = [];
  if (paths.length) {
    children.push(
      make('p', { className: 'quiet' },
        'Known facts that connect both entities, with the probability that '
        + 'the model gives to each path.'
        + (explanation.complete ? '' : ' Only some of the paths were compared, '
          + 'because these entities have many facts.')),
      picture(paths, width), listOf(paths, choose));
  } else {
    children.push(make('p', { className: 'quiet' },
      'No path of up to three known facts connects both entities.'));
  }
  if (explanation.similar.length) {
    children.push(
      make('p', { className: 'quiet' },
        'Known facts of this relation with the most similar entities '
        + '(similarity 1 means equal):'),
      make('ul', { className: 'paths' }, ...explanation.similar.map((one) =>
        make('li', {},
          make('span', { className: 'number' }, one.similarity.toFixed(2)),
          describeFact(one.fact, choose)))));
  }
  return children;
}

async function traced(question, answer, width, choose, review) {
  const found = await send('trace', {
    entity: question.entity, steps: question.steps, answer: answer.label,
    top: 10,
  });
  const paths = found.paths.map((path) => ({
    edges: follow(
      question.entity, path.facts.map((one) => one.fact), path.facts),
    ...path,
  }));
  const added = new Map(found.paths.flatMap((path) => path.facts)
    .filter((one) => !one.known_in)
    .map(({ fact }) => [JSON.stringify(fact), fact]));
  const children = [
    make('p', { className: 'quiet' },
      'Paths to this answer, with their probabilities. Paths of known facts '
      + 'come first. New facts have a broken line.'),
    picture(paths, width), listOf(paths, choose),
  ];
  if (added.size) {
    children.push(
      make('p', { className: 'quiet' }, 'New facts in these paths:'),
      make('ul', { className: 'added' }, ...[...added.values()].map((fact) =>
        make('li', {}, describeFact(fact, choose), review.buttons(fact)))));
  }
  return children;
}

const listOf = (paths, choose) =>
  make('ul', { className: 'paths' }, ...paths.map((path) => make('li', {},
    make('span', { className: 'number' }, percent(path.probability)),
    describePath(path.edges, choose))));

// Draws the first five paths, or three in a narrow picture. Paths through the
// same entities count as one path.
function picture(paths, width) {
  const most = width < 560 ? 3 : 5;
  const lanes = new Set();
  const drawn = paths.filter(({ edges }) => {
    const lane = JSON.stringify(edges.map((edge) => edge.to));
    if (!lanes.has(lane) && lanes.size >= most) return false;
    lanes.add(lane);
    return true;
  });
  return pathGraph(drawn.map((path) => path.edges), width);
}

// Returns the edges of the path that starts at an entity and follows facts.
// details: for each fact, `backwards` and `known_in`. Default: all facts are
// known.
function follow(entity, facts, details = []) {
  let here = entity;
  return facts.map(([head, relation, tail], index) => {
    const detail = details[index];
    const backwards = detail ? detail.backwards : head !== here;
    const edge = {
      from: here, to: backwards ? head : tail, relation, backwards,
      known: !detail || Boolean(detail.known_in),
      split: detail ? detail.known_in : '',
    };
    here = edge.to;
    return edge;
  });
}

// Returns the fact that an answer to a question of one step states.
export function factOf(question, answer) {
  const { relation, backwards } = question.steps[0];
  return backwards
    ? [answer.label, relation, question.entity]
    : [question.entity, relation, answer.label];
}
