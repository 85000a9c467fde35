// Shows openapi.json as a page.

import { authorization } from './api.js';
import { find, make } from './dom.js';

const nameOf = (schema) => schema.$ref && schema.$ref.split('/').pop();
const resolve = (schema, all) => all[nameOf(schema)] || schema;

// Returns a type as text. If `named`, an object is shown by its name.
function typeOf(schema, all, named) {
  if (named && schema.$ref) return nameOf(schema);
  const known = resolve(schema, all);
  if (known.anyOf) {
    return known.anyOf.map((one) => typeOf(one, all, named)).join(' or ');
  }
  if (known.const !== undefined) return JSON.stringify(known.const);
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(', ');
  if (known.type === 'array') {
    return `list of ${typeOf(known.items, all, named)}`;
  }
  if (known.properties) {
    return `{${Object.entries(known.properties)
      .map(([name, one]) => `${name}: ${typeOf(one, all)}`).join(', ')}}`;
  }
  return known.type || 'any';
}

function field(name, schema, required, all, named = false) {
  const notes = [typeOf(schema, all, named)];
  if (required) notes.push('required');
  if (schema.default !== undefined && schema.default !== null) {
    notes.push(`default ${JSON.stringify(schema.default)}`);
  }
  if (schema.minimum !== undefined) notes.push(`at least ${schema.minimum}`);
  return make('li', {}, make('code', {}, name),
    make('span', { className: 'quiet' }, ` ${notes.join('; ')}`));
}

// Splits a text at backticks, and makes every second part a code element.
const withCode = (text) => text.split('`').map(
  (part, index) => (index % 2 ? make('code', {}, part) : part));

// Returns all objects in a schema, also nested objects, by name.
function collect(schema, all, found = new Map()) {
  for (const [key, part] of Object.entries(schema)) {
    if (key === '$ref' && !found.has(nameOf(schema))) {
      found.set(nameOf(schema), resolve(schema, all));
      collect(resolve(schema, all), all, found);
    } else if (part && typeof part === 'object') {
      collect(part, all, found);
    }
  }
  return found;
}

// Returns a foldable list of the fields of a JSON response.
function result(described, all) {
  const [content] = Object.values(described.responses['200'].content || {});
  if (!content) return '';
  const found = collect(content.schema, all);
  for (const one of content.schema.anyOf || []) found.set(one.title, one);
  if (!found.size) return '';
  return make('details', {},
    make('summary', {}, 'Response'),
    ...[...found].flatMap(([name, one]) => [
      make('p', {}, make('strong', {}, name), ': ',
        ...withCode(one.description || '')),
      make('ul', { className: 'lines' },
        ...Object.entries(one.properties).map(
          ([key, part]) => field(key, part, false, all, true)))]));
}

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
    make('ul', { className: 'lines' }, ...fields),
    result(described, all));
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
    'The description cannot be read. First enter the token on the main page.'));
}
