// A question: an entity and up to three steps. The address of the page contains
// it, so that a question can be linked and the browser can go back to it.

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
