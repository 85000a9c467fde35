// Pictures in SVG: paths as a graph, and the map of an entity.

import { draw, shorten } from './dom.js';

// Draws paths from the first to the last entity.
// paths: lists of { from, to, relation, backwards, known }.
// The graph runs from left to right, or downwards in a narrow place.
export function pathGraph(paths, width) {
  const down = width < 560;
  const depth = Math.max(...paths.map((path) => path.length));
  const layers = [];
  const nodes = new Map();
  const edges = new Map();

  function node(label, layer) {
    const key = JSON.stringify([label, layer]);
    if (!nodes.has(key)) {
      layers[layer] = layers[layer] || [];
      layers[layer].push(key);
      nodes.set(key, { label, layer, place: layers[layer].length - 1 });
    }
    return key;
  }

  for (const path of paths) {
    path.forEach((edge, index) => {
      // The last entity of all paths is in the last layer.
      const end = index === path.length - 1 ? depth : index + 1;
      const from = node(edge.from, index);
      const to = node(edge.to, end);
      edges.set(JSON.stringify([from, to, edge.relation, edge.backwards]),
        { ...edge, from, to });
    });
  }

  const most = Math.max(...layers.map((layer) => layer.length));
  const across = down ? width : Math.max(90, 62 * most + 20);
  const along = down ? 90 * depth + 60 : width;
  const box = down
    ? { width: Math.min(120, width / most - 6), height: 26 }
    : { width: Math.min(150, width / (depth + 1) - 60), height: 26 };
  for (const one of nodes.values()) {
    const count = layers[one.layer].length;
    const a = (across * (one.place + 0.5)) / count;
    const margin = down ? 24 : box.width / 2 + 6;
    const b = margin + ((along - 2 * margin) * one.layer) / depth;
    [one.x, one.y] = down ? [a, b] : [b, a];
  }

  const height = down ? along : across;
  const svg = draw('svg', {
    class: 'picture', role: 'img', viewBox: `0 0 ${width} ${height}`,
    'aria-label': `${paths.length} paths, listed below`,
  });
  const parallel = new Map();
  for (const edge of edges.values()) {
    const from = nodes.get(edge.from);
    const to = nodes.get(edge.to);
    const pair = edge.from + edge.to;
    const nth = parallel.get(pair) || 0;
    parallel.set(pair, nth + 1);
    const bend = 34 * Math.ceil(nth / 2) * (nth % 2 ? 1 : -1);
    svg.append(...drawEdge(from, to, edge, { down, box, bend }));
  }
  for (const one of nodes.values()) {
    const end = one.layer === 0 || one.layer === depth;
    svg.append(draw('g', {},
      draw('title', {}, one.label),
      draw('rect', {
        class: end ? 'node end' : 'node', rx: 6,
        x: one.x - box.width / 2, y: one.y - box.height / 2, ...box,
      }),
      draw('text', { x: one.x, y: one.y + 4, 'text-anchor': 'middle' },
        shorten(one.label, Math.max(3, Math.floor(box.width / 7.2))))));
  }
  return svg;
}

function drawEdge(from, to, edge, { down, box, bend }) {
  const half = down ? box.height / 2 : box.width / 2;
  const start = down ? [from.x, from.y + half] : [from.x + half, from.y];
  const end = down ? [to.x, to.y - half] : [to.x - half, to.y];
  const middle = [
    (start[0] + end[0]) / 2 + (down ? bend : 0),
    (start[1] + end[1]) / 2 + (down ? 0 : bend),
  ];
  // A quadratic curve through `middle`.
  const control = [0, 1].map(
    (axis) => 2 * middle[axis] - (start[axis] + end[axis]) / 2);
  const kind = edge.known ? '' : ' new';
  const [tip, before] = edge.backwards ? [start, control] : [end, control];
  const angle = Math.atan2(tip[1] - before[1], tip[0] - before[0]);
  const corner = (turn) =>
    `${tip[0] - 9 * Math.cos(angle + turn)},${tip[1] - 9 * Math.sin(angle + turn)}`;
  return [
    draw('path', {
      class: `edge${kind}`, d: `M${start} Q${control} ${end}`,
    }),
    draw('polygon', {
      class: `head${kind}`, points: `${tip} ${corner(0.4)} ${corner(-0.4)}`,
    }),
    draw('text', {
      class: 'on-edge', x: middle[0], y: middle[1] + (down ? 4 : -5),
      'text-anchor': 'middle',
    }, draw('title', {}, edge.relation), shorten(edge.relation, 18)),
  ];
}

const HUES = 11;

export const groupColor = (group) =>
  `hsl(${(group % HUES) * (360 / HUES)} 65% ${group < HUES ? 50 : 68}%)`;

// Draws points { x, y, group, text } in a square.
export function pointMap(points) {
  const size = 420;
  const margin = 16;
  const scale = (name) => {
    const values = points.map((point) => point[name]);
    const low = Math.min(...values);
    const span = Math.max(...values) - low || 1;
    return (value) => margin + ((size - 2 * margin) * (value - low)) / span;
  };
  const [x, y] = [scale('x'), scale('y')];
  const svg = draw('svg', {
    class: 'picture', role: 'img', viewBox: `0 0 ${size} ${size}`,
    'aria-label': 'Map of the contextual embeddings of the entity',
  }, draw('rect', {
    class: 'frame', x: 0.5, y: 0.5, width: size - 1, height: size - 1,
  }));
  for (const point of points) {
    svg.append(draw('circle', {
      class: 'point', r: 5, cx: x(point.x), cy: size - y(point.y),
      fill: groupColor(point.group),
    }, draw('title', {}, point.text)));
  }
  return svg;
}
