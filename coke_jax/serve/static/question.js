// A question: an entity and up to three steps. The address of the page contains
// the question, so links and the history of the browser lead to questions.

export const MOST_STEPS = 3;

const FORWARDS = '>';
const BACKWARDS = '<';

export function toHash({ entity, steps }) {
  if (!entity) return '';
  const fields = steps.map(({ relation, backwards }) =>
    ['step', (backwards ? BACKWARDS : FORWARDS) + relation]);
  return `#${new URLSearchParams([['entity', entity], ...fields])}`;
}

export function fromHash(hash) {
  const fields = new URLSearchParams(hash.slice(1));
  const steps = fields.getAll('step').slice(0, MOST_STEPS).map((text) => ({
    // In a link that was written by hand, the direction can be missing.
    relation: [FORWARDS, BACKWARDS].includes(text[0]) ? text.slice(1) : text,
    backwards: text[0] === BACKWARDS,
  }));
  return { entity: fields.get('entity') || '', steps };
}
