// The page: an entity, a question about it, answers and a review.

import { showAnswers } from './answers.js';
import { hasToken, latest, send, useToken } from './api.js';
import { combobox } from './combobox.js';
import { arrow, breakable, find, make, number } from './dom.js';
import { entityPanel } from './entity.js';
import { fromHash, MOST_STEPS, toHash } from './question.js';
import { Review } from './review.js';

const SHOWN_STEPS = 40; // maximum number of suggested relations
const SHOWN_CHOICES = 8; // maximum number of buttons in the start panel

let question = { entity: '', steps: [] };
let about = {};
let review;
let examples = [];
let nextSteps = Promise.resolve([]);
const search = latest();
const ask = latest();
const offer = latest();

// Shows an error, or hides it if `error` is null.
// retry: repeats the failed action. If the status is 4xx, no retry is offered.
function report(error, retry) {
  const refused = Boolean(error) && error.status === 401;
  find('problem').hidden = !error || refused;
  find('problem-text').textContent = error ? error.message : '';
  find('retry').hidden = !retry || (error.status >= 400 && error.status < 500);
  find('retry').onclick = () => {
    report(null);
    retry();
  };
  if (refused) {
    find('token-text').textContent = hasToken()
      ? 'The server does not accept this token.' : 'This server needs a token.';
    find('token-form').hidden = false;
    find('token').focus();
  }
}

const showEntity = entityPanel({ choose, report });

// Starts a question. If there are steps, moves the focus to the answers,
// otherwise to the entity.
function choose(entity, steps = []) {
  change({ entity, steps });
  find(steps.length ? 'answers-title' : 'entity-title').focus();
}

// Changes the question. The browser can go back to the previous question.
function change(changed) {
  question = changed;
  if (toHash(question) !== window.location.hash) {
    window.history.pushState(null, '', toHash(question));
  }
  update();
}

// Shows the question, and requests its answers and the next relations.
async function update() {
  const { entity, steps } = question;
  report(null);
  find('entity').value = entity;
  showQuestion();
  showEntity(entity);
  find('answers-section').hidden = steps.length === 0;
  find('start').hidden = steps.length > 0;
  showStart([]);
  if (!entity) {
    showStart(examples.map((label) => [label, '', () => choose(label)]));
    return;
  }
  try {
    nextSteps = steps.length < MOST_STEPS
      ? offer('steps', { entity, steps }).then((found) => found.steps)
      : Promise.resolve([]);
    await Promise.all([
      nextSteps, steps.length ? answer() : nextSteps.then(showSteps)]);
  } catch (error) {
    report(error, update);
    find('answers-section').hidden = true;
    if (error.status === 422) showEntity('');
  }
}

// Offers first steps along which there are known facts.
function showSteps(steps) {
  const known = steps.filter((one) => one.known);
  showStart(known.map(({ relation, backwards, known: count }) => {
    const step = { relation, backwards };
    return [arrow(step), number(count), () => choose(question.entity, [step])];
  }));
}

// Shows the start panel. choices: for each button, [text, note, onclick].
function showStart(choices) {
  const { entity } = question;
  find('start-title').textContent = entity ? 'Ask a question' : 'Start';
  find('start-text').replaceChildren(...(entity
    ? ['Choose a relation of ', make('bdi', {}, entity), '. The model predicts '
      + 'to which entities the relation leads. You can add more relations.']
    : ['Choose an entity to see its known facts and to predict new facts.']));
  find('choices').replaceChildren(...choices.slice(0, SHOWN_CHOICES).map(
    ([text, note, onclick]) => make('li', {}, make('button', {
      type: 'button', dir: 'auto', onclick,
    }, ...breakable(text),
    note ? make('small', { title: 'known facts' }, note) : ''))));
}

function showQuestion() {
  const { entity, steps } = question;
  find('question').hidden = steps.length === 0;
  find('question').replaceChildren(
    make('bdi', { className: 'step' }, entity),
    ...steps.map((step) => make(
      'bdi', { className: 'step relation' }, ...breakable(arrow(step)))),
    make('span', { className: 'step' }, '?'),
    make('button', {
      type: 'button', onclick: removeStep,
    }, 'Remove the last relation'));
  const input = find('relation');
  const full = steps.length >= MOST_STEPS;
  input.value = '';
  input.disabled = !entity || full;
  input.placeholder = full ? `At most ${MOST_STEPS} relations`
    : !entity ? 'Choose an entity first'
      : steps.length ? 'Add another relation' : 'Choose a relation';
}

function removeStep() {
  change({ ...question, steps: question.steps.slice(0, -1) });
  find('relation').focus();
}

async function answer() {
  const asked = question;
  const list = find('answers');
  find('method').textContent ||= 'Loading …';
  list.inert = true;
  try {
    const found = await ask('ask', {
      ...asked,
      top: Number(find('top').value),
      new_only: find('new-only').checked,
      type_matching: find('type-matching').checked,
      exclude_own: find('exclude-own').checked,
    });
    showAnswers(asked, found, { about, choose, report, review });
  } catch (error) {
    find('method').textContent = '';
    list.replaceChildren();
    throw error;
  } finally {
    list.inert = false;
  }
}

async function suggestSteps(text) {
  const wanted = text.toLowerCase().trim();
  return (await nextSteps)
    .filter((step) => step.relation.toLowerCase().includes(wanted))
    .slice(0, SHOWN_STEPS)
    .map((step) => ({
      text: arrow(step), step,
      note: step.known ? `${number(step.known)} known` : '',
    }));
}

combobox(find('entity'), find('entity-options'), {
  report,
  async suggest(text) {
    const part = encodeURIComponent(text.slice(0, 200).toWellFormed());
    const found = await search(`search?limit=10&text=${part}`);
    return found.labels.map((label) => ({ text: label }));
  },
  nothing: (text) => `No entity contains “${text}”`,
  choose(item) {
    change({ entity: item.text, steps: [] });
    find('relation').focus();
    return item.text;
  },
});

combobox(find('relation'), find('relation-options'), {
  report,
  suggest: suggestSteps,
  nothing: (text) => `No relation contains “${text}”`,
  choose({ step: { relation, backwards } }) {
    change({
      ...question, steps: [...question.steps, { relation, backwards }],
    });
    if (find('relation').disabled) find('answers-title').focus();
    return '';
  },
});

find('dismiss').addEventListener('click', () => {
  report(null);
  find('entity').focus();
});
for (const id of ['new-only', 'type-matching', 'exclude-own', 'top']) {
  find(id).addEventListener('change', update);
}
find('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  useToken(find('token').value);
  find('token-form').hidden = true;
  start();
});
window.addEventListener('popstate', () => {
  question = fromHash(window.location.hash);
  update();
});

async function start() {
  report(null);
  try {
    about = await send('model');
    examples = (await send(`search?limit=${SHOWN_CHOICES}`)).labels;
  } catch (error) {
    find('about').textContent = '';
    report(error, start);
    return;
  }
  find('about').textContent = `${about.name}: ${number(about.entities)} `
    + `entities, ${number(about.relations)} relations, `
    + `${number(about.facts)} facts`;
  document.title = `${about.name} – coke_jax`;
  review = review || new Review(about.name, choose);
  find('ask').hidden = false;
  question = fromHash(window.location.hash);
  update();
  find('entity').focus();
}

start();
