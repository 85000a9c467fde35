// Small functions that create and fill elements.

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

// Returns a fact as text and buttons that choose its entities.
export function describeFact([head, relation, tail], choose) {
  const entity = (label) =>
    make('button', { className: 'entity', type: 'button',
      onclick: () => choose(label) }, label);
  return make('span', {}, entity(head), ' ',
    make('span', { className: 'relation' }, relation), ' ', entity(tail));
}

export function shorten(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

export function percent(probability) {
  if (probability >= 0.995) return `${(100 * probability).toFixed(1)} %`;
  if (probability >= 0.095) return `${(100 * probability).toFixed(0)} %`;
  if (probability >= 0.001) return `${(100 * probability).toFixed(1)} %`;
  return '< 0.1 %';
}
