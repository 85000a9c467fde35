// Requests to the server that sent this page.

let token = sessionStorage.getItem('coke-token') || '';

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function useToken(given) {
  token = given;
  sessionStorage.setItem('coke-token', given);
}

// Sends a request. If `body` is undefined, the method is GET. If the server is
// busy, the request is repeated.
export async function send(path, body, signal) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  for (let attempt = 0; ; attempt += 1) {
    const response = await fetch(`/v1/${path}`, options);
    if (response.ok) return response.json();
    if (response.status === 503 && attempt < 3) {
      const seconds = Number(response.headers.get('Retry-After')) || 1;
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      continue;
    }
    const text = await response.text();
    let message = text;
    try {
      message = JSON.parse(text).error;
    } catch {
      // The text is not JSON.
    }
    throw new ServerError(response.status, message || response.statusText);
  }
}

// Returns a function that sends requests. If a further request is sent, the
// promises of the earlier ones never resolve.
export function latest() {
  let controller = new AbortController();
  return async (path, body) => {
    controller.abort();
    const own = new AbortController();
    controller = own;
    try {
      return await send(path, body, own.signal);
    } catch (error) {
      if (own.signal.aborted) return new Promise(() => {});
      throw error;
    }
  };
}
