// Requests to the server that sent this page.

import * as storage from './storage.js';

const ATTEMPTS = 4;

let token = storage.read(storage.session, 'coke-token');

export class ServerError extends Error {
  // status: the HTTP status. 0 if there was no response.
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasToken = () => token !== '';

// Returns the headers that contain the token. Each character of a header is one
// byte, so the token is encoded in UTF-8.
export function authorization() {
  const bytes = new TextEncoder().encode(token);
  return token
    ? { Authorization: `Bearer ${String.fromCharCode(...bytes)}` } : {};
}

export function useToken(given) {
  token = given;
  storage.write(storage.session, 'coke-token', given);
}

// Sends a request. If `body` is undefined, the method is GET. If the server is
// busy, the request is repeated.
export async function send(path, body, signal) {
  const headers = authorization();
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  for (let attempt = 1; ; attempt += 1) {
    const response = await respond(`/v1/${path}`, options);
    if (response.ok) return response.json();
    if (response.status === 503 && attempt < ATTEMPTS) {
      const seconds = Number(response.headers.get('Retry-After')) || 1;
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      continue;
    }
    throw new ServerError(response.status, await messageOf(response));
  }
}

async function respond(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError(
      0, 'There is no connection to the server. It may have been stopped.');
  }
}

async function messageOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error || response.statusText;
  } catch {
    // The response of a proxy may not be JSON.
    return `The server answered with status ${response.status}.`;
  }
}

// Returns a function that sends requests. Each request aborts the previous one,
// whose promise then never resolves.
export function latest() {
  let controller = new AbortController();
  return async (path, body) => {
    controller.abort();
    const own = new AbortController();
    controller = own;
    try {
      const found = await send(path, body, own.signal);
      if (!own.signal.aborted) return found;
    } catch (error) {
      if (!own.signal.aborted) throw error;
    }
    return new Promise(() => {});
  };
}
