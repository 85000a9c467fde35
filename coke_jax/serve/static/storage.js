// Texts that the browser stores. The page also works if nothing can be stored.

const open = (name) => {
  try {
    return window[name];
  } catch {
    return null;
  }
};

export const local = open('localStorage');
export const session = open('sessionStorage');

export function read(store, key) {
  try {
    return store.getItem(key) || '';
  } catch {
    return '';
  }
}

export function write(store, key, text) {
  try {
    store.setItem(key, text);
  } catch {
    // The store is missing or full.
  }
}
