// Paths as a small graph in SVG.

import { arrow, draw } from './dom.js';

const BOX_HEIGHT = 26;
const TITLE = 20; // height of the labels above the graph
const NARROW = 560; // A graph of fewer pixels in width runs downwards.
const MOST_LABELS = 3; // maximum number of labels on a line
const NEARER = 0.75; // position of a label on its line, from 0 to 1
// Entities are drawn in layers. SPREAD is the distance between two lines at
// their labels, divided by the distance between their ends in the layer with
// more entities.
const SPREAD = 0.84;
const measure = document.createElement('canvas').getContext('2d');

// Draws paths from the first to the last entity.
// paths: lists of edges { from, to, relation, backwards, known }. All paths
// start and end at the same entities. If `backwards`, `to` is the head of the
// fact. width: in pixels.
export function pathGraph(paths, width) {
  const down = width < NARROW;
  const { layers, nodes, lines } = arrange(paths);
  const depth = layers.length - 1;
  const most = Math.max(...layers.map((layer) => layer.length));
  const box = {
    width: Math.min(150, down ? width / most - 8 : width / (depth + 1) - 64),
    height: BOX_HEIGHT,
  };
  const across = down ? width : Math.max(70, 56 * most);
  const along = down ? 96 * depth + BOX_HEIGHT + 8 : width;
  const margin = (down ? box.height : box.width) / 2 + 4;
  const common = commonLabels([...lines.values()], nodes, depth);
  const above = down || common.every((label) => label === null) ? 0 : TITLE;
  const middle = (layer) => margin + ((along - 2 * margin) * layer) / depth;
  for (const one of nodes.values()) {
    const a = (across * (one.place + 0.5)) / layers[one.layer].length;
    const b = middle(one.layer);
    [one.x, one.y] = down ? [a, b] : [b, a + above];
  }
  const height = (down ? along : across) + above;
  const svg = draw('svg', {
    class: 'picture', role: 'img', viewBox: `0 0 ${width} ${height}`,
    width, height, 'aria-label': 'Graph of the paths that are listed below',
  });
  // Draw lines, then labels, then boxes: a line must not hide a label or a box.
  const drawn = [...lines.values()].map(
    (line) => drawLine(line, nodes, layers, { down, box, width }));
  svg.append(...drawn.flatMap((one) => one.strokes));
  svg.append(...drawn.filter((one) => common[one.layer] === null)
    .flatMap((one) => one.labels));
  common.forEach((text, layer) => {
    if (text === null) return;
    const place = middle(layer + 0.5);
    const [x, y] = down ? [4, place + 4] : [place, TITLE - 6];
    svg.append(label(text, x, y, down ? width / 3 : width / depth, '',
      down ? 'start' : 'middle'));
  });
  svg.append(...[...nodes.values()].filter((one) => one.label !== null)
    .map((one) => drawBox(one, box, depth)));
  return svg;
}

// Sorts entities into layers by their position in a path. The last entity is in
// the last layer. Each layer that a line skips gets a node without a label.
function arrange(paths) {
  const depth = Math.max(...paths.map((path) => path.length));
  const layers = Array.from({ length: depth + 1 }, () => []);
  const nodes = new Map();
  const lines = new Map();

  function node(key, layer, label) {
    const full = JSON.stringify([key, layer]);
    if (!nodes.has(full)) {
      nodes.set(full, { label, layer, place: layers[layer].length });
      layers[layer].push(full);
    }
    return full;
  }

  for (const path of paths) {
    path.forEach((edge, index) => {
      const end = index === path.length - 1 ? depth : index + 1;
      const from = node(edge.from, index, edge.from);
      const places = [from];
      for (let layer = index + 1; layer < end; layer += 1) {
        places.push(node([from, 'line'], layer, null));
      }
      places.push(node(edge.to, end, edge.to));
      const key = JSON.stringify(places);
      if (!lines.has(key)) lines.set(key, { places, relations: new Map() });
      const { relations } = lines.get(key);
      const seen = relations.get(edge.relation)
        || { forwards: false, backwards: false, known: false };
      seen[edge.backwards ? 'backwards' : 'forwards'] = true;
      seen.known = seen.known || edge.known;
      relations.set(edge.relation, seen);
    });
  }
  return { layers, nodes, lines };
}

// Returns the common label of the lines from each layer except the last. The
// label is null if the labels differ, if a line has several labels, or if there
// is only one line.
function commonLabels(lines, nodes, depth) {
  return Array.from({ length: depth }, (_, layer) => {
    const own = lines.filter(
      ({ places }) => nodes.get(places[0]).layer === layer);
    const texts = new Set(own.map(
      ({ relations }) => JSON.stringify(describe(relations))));
    return own.length > 1 && texts.size === 1
      && own.every(({ relations }) => relations.size === 1)
      ? describe(own[0].relations)[0] : null;
  });
}

// Draws one line for all facts between two entities.
function drawLine({ places, relations }, nodes, layers, { down, box, width }) {
  const points = places.map((key) => nodes.get(key));
  const half = (down ? box.height : box.width) / 2;
  const stops = points.map(({ x, y }, index) => {
    const shift = index === 0 ? half : index === points.length - 1 ? -half : 0;
    return down ? [x, y + shift] : [x + shift, y];
  });
  const kinds = [...relations.values()];
  const kind = kinds.some((one) => one.known) ? '' : ' new';
  const curves = stops.slice(1).map((stop, index) => curve(
    stops[index], stop, down));
  const strokes = [draw('path', {
    class: `edge${kind}`,
    d: `M${stops[0]} ${curves.map((one) => `C${one.slice(1)}`).join(' ')}`,
  })];
  if (kinds.some((one) => one.forwards)) {
    strokes.push(tip(stops[stops.length - 1], 1, down, kind));
  }
  if (kinds.some((one) => one.backwards)) {
    strokes.push(tip(stops[0], -1, down, kind));
  }

  const [before, after] = [0, 1].map(
    (index) => layers[points[index].layer].length);
  // In a graph that runs downwards, a label is nearer to the layer with more
  // entities, where the lines are farther apart.
  const nearer = !down || before === after ? 0.5
    : before < after ? NEARER : 1 - NEARER;
  const [x, y] = points.length > 2 ? stops[1] : at(curves[0], nearer);
  const room = down
    ? SPREAD * width / Math.max(before, after) - 6
    : Math.abs(stops[1][0] - stops[0][0]) - 16;
  const labels = describe(relations).map((text, index, all) => label(
    text, x, y + 4 + 14 * (index - (all.length - 1) / 2), room, kind));
  return { layer: points[0].layer, strokes, labels };
}

const label = (text, x, y, room, kind, anchor = 'middle') => draw('text', {
  class: `on-edge${kind}`, x, y, 'text-anchor': anchor,
}, draw('title', {}, text), fit(text, room, 11));

// Returns the labels of a line. The label of a single relation has no arrow,
// because the line has a tip.
function describe(relations) {
  const all = [...relations];
  if (all.length === 1) return [all[0][0]];
  const texts = all.map(([relation, { forwards, backwards }]) => (
    forwards && backwards ? `← ${relation} →` : arrow({ relation, backwards })));
  if (texts.length <= MOST_LABELS) return texts;
  const left = texts.length - MOST_LABELS + 1;
  return [...texts.slice(0, -left), `and ${left} more`];
}

function drawBox(one, box, depth) {
  const end = one.layer === 0 || one.layer === depth;
  return draw('g', {},
    draw('title', {}, one.label),
    draw('rect', {
      class: end ? 'node end' : 'node', rx: 6,
      x: one.x - box.width / 2, y: one.y - box.height / 2, ...box,
    }),
    draw('text', { x: one.x, y: one.y + 4, 'text-anchor': 'middle' },
      fit(one.label, box.width - 12, 12)));
}

// Returns the control points of a Bézier curve from [x, y] to [u, v].
function curve([x, y], [u, v], down) {
  const middle = down ? (y + v) / 2 : (x + u) / 2;
  return down
    ? [[x, y], [x, middle], [u, middle], [u, v]]
    : [[x, y], [middle, y], [middle, v], [u, v]];
}

// Returns a point of a curve. share: from 0 at its start to 1 at its end.
function at(points, share) {
  const rest = 1 - share;
  const weights = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2,
    share ** 3];
  return [0, 1].map((axis) => points.reduce(
    (sum, point, index) => sum + weights[index] * point[axis], 0));
}

// Draws the tip of an arrow. direction: 1 along the path, -1 against it.
function tip([x, y], direction, down, kind) {
  const back = -8 * direction;
  const points = down
    ? [[x, y], [x - 4, y + back], [x + 4, y + back]]
    : [[x, y], [x + back, y - 4], [x + back, y + 4]];
  return draw('polygon', { class: `head${kind}`, points: points.join(' ') });
}

// Shortens a text to a width in pixels.
function fit(text, width, size) {
  measure.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  const characters = [...text];
  const wide = (count) => measure.measureText(
    characters.slice(0, count).join('')).width > width - 8;
  if (measure.measureText(text).width <= width) return text;
  let count = characters.length;
  while (count > 1 && wide(count)) count -= 1;
  return `${characters.slice(0, count).join('')}…`;
}
