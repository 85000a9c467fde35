// Shows openapi.json as a page.

import { authorization } from './api.js';
import { find, make } from './dom.js';

const resolve = (schema, all) => (schema.$ref
  ? all[schema.$ref.split('/').pop()] : schema);

function typeOf(schema, all) {
  const known = resolve(schema, all);
  if (known.anyOf) {
    return known.anyOf.map((one) => typeOf(one, all)).join(' or ');
  }
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(', ');
  if (known.type === 'array') return `list of ${typeOf(known.items, all)}`;
  if (known.properties) {
    return `{${Object.entries(known.properties)
      .map(([name, one]) => `${name}: ${typeOf(one, all)}`).join(', ')}}`;
  }
  return known.type || 'any';
}

function field(name, schema, required, all) {
  const notes = [typeOf(schema, all)];
  if (required) notes.push('required');
  if (schema.default !== undefined && schema.default !== null) {
    notes.push(`default ${JSON.stringify(schema.default)}`);
  }
  if (schema.minimum !== undefined) notes.push(`at least ${schema.minimum}`);
  return make('li', {}, make('code', {}, name),
    make('span', { className: 'quiet' }, ` ${notes.join('; ')}`));
}

// Returns a text in which the parts between backticks are code.
const withCode = (text) => text.split('`').map(
  (part, index) => (index % 2 ? make('code', {}, part) : part));

function operation(path, method, described, all) {
  const fields = (described.parameters || []).map(
    (one) => field(one.name, one.schema, one.required, all));
  let text = described.description || '';
  const body = described.requestBody
    && described.requestBody.content['application/json'];
  if (body) {
    const schema = resolve(body.schema, all);
    text = schema.description || text;
    for (const [name, one] of Object.entries(schema.properties || {})) {
      fields.push(field(
        name, one, (schema.required || []).includes(name), all));
    }
  }
  return make('section', { className: 'panel' },
    make('h2', {}, make('code', {}, `${method.toUpperCase()} ${path}`)),
    make('p', {}, make('strong', {}, described.summary || '')),
    make('p', {}, ...withCode(text)),
    make('ul', { className: 'lines' }, ...fields));
}

const response = await fetch('/openapi.json', { headers: authorization() });
const place = find('operations');
if (response.ok) {
  const found = await response.json();
  const all = (found.components || {}).schemas || {};
  for (const [path, methods] of Object.entries(found.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      place.append(operation(path, method, described, all));
    }
  }
} else {
  place.append(make('p', { className: 'panel' },
    'The description cannot be read. Enter the token on the page first.'));
}
