// Every candidate of a search on a plane of loss and risk: 100,000 of them as a density, the frontier exact above it.
import { isDark } from "./base.js";

const LEFT = 68, RIGHT = 16, TOP = 12, BOTTOM = 46; // room for the axes, in CSS pixels
const CELL = 24, REACH = 22, ROOM = 0.08;

const LIGHT = { paper: [255, 255, 255], pale: [199, 206, 212], deep: [58, 66, 74], ink: "#1b1f24", soft: "#59636e", line: "rgb(20 30 40 / 8%)", accent: "#0069a6", pin: "#b34a00", predicted: "#00714f" };
const DARK = { paper: [26, 30, 34], pale: [66, 75, 83], deep: [214, 220, 225], ink: "#e7eaec", soft: "#a1abb4", line: "rgb(255 255 255 / 9%)", accent: "#6bbdec", pin: "#f0a95c", predicted: "#5cc9a4" };

export class Plane {
  // `host` holds two canvases, .cloud and .over; `axes` name loss and risk; `told` is called with what was pointed at.
  constructor(host, axes, told) {
    this.axes = axes; this.told = told;
    this.cloud = host.querySelector(".cloud"); this.over = host.querySelector(".over");
    this.back = this.cloud.getContext("2d", { alpha: false }); this.front = this.over.getContext("2d");
    this.count = 0; this.ids = new Uint32Array(4096); this.x = new Float32Array(4096); this.y = new Float32Array(4096);
    this.next = new Int32Array(4096);
    this.frontier = []; this.places = new Map(); this.pins = new Set(); this.predicted = []; this.limit = null;
    this.hovered = -1; this.chosen = -1; this.brush = null; this.zoom = null; this.range = null;
    this.font = getComputedStyle(host).fontFamily;
    this.resized = new ResizeObserver(([entry]) => this.measure(entry.contentRect));
    this.resized.observe(host);
    addEventListener("theme", () => this.redraw());
    this.listen();
  }

  measure(box) {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (!box.width || (this.width === box.width && this.height === box.height && this.ratio === ratio)) return;
    Object.assign(this, { width: box.width, height: box.height, ratio });
    for (const canvas of [this.cloud, this.over]) { canvas.width = Math.round(box.width * ratio); canvas.height = Math.round(box.height * ratio); }
    this.redraw();
  }

  // Add candidates: three arrays of one length. What is new is added to the picture; all is drawn anew when the axes grow.
  add(ids, loss, risk) {
    if (!ids.length) return;
    const first = this.count;
    this.make(first + ids.length);
    this.ids.set(ids, first); this.x.set(loss, first); this.y.set(risk, first);
    this.count += ids.length;
    for (let i = first; i < this.count; i++) { this.places.set(this.ids[i], i); this.onFrontier(i); }
    if (this.fit() || this.stampSize(first) !== this.stampSize(this.count)) this.redraw();
    else if (this.width) { this.stamp(first); this.shade(); this.drawOver(); }
  }

  make(room) {
    if (room <= this.ids.length) return;
    const size = Math.max(room, 2 * this.ids.length);
    for (const name of ["ids", "x", "y", "next"]) { const old = this[name]; this[name] = new old.constructor(size); this[name].set(old); }
  }

  // The frontier is kept by loss; a binary search finds the place of a newcomer, who drives out what it dominates.
  onFrontier(i) {
    const { x, y, frontier } = this;
    if (!(Number.isFinite(x[i]) && Number.isFinite(y[i]))) return;
    let low = 0, high = frontier.length;
    while (low < high) { const middle = (low + high) >> 1; if (x[frontier[middle]] > x[i]) high = middle; else low = middle + 1; }
    if (low > 0) {
      const before = frontier[low - 1];
      if (y[before] < y[i] || (y[before] === y[i] && x[before] < x[i])) return;
    }
    let from = low, to = low;
    while (from > 0 && x[frontier[from - 1]] === x[i] && y[frontier[from - 1]] > y[i]) from--;
    while (to < frontier.length && y[frontier[to]] >= y[i]) to++;
    frontier.splice(from, to - from, i);
  }

  // The axes hold all points with room, and grow by steps; returns whether they changed.
  fit() {
    if (this.zoom) { this.range = this.zoom; return false; }
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    const { x, y } = this, from = this.range && !this.range.zoomed ? this.fitted : 0;
    for (let i = from; i < this.count; i++) {
      if (!(Number.isFinite(x[i]) && Number.isFinite(y[i]))) continue;
      if (x[i] < left) left = x[i];
      if (x[i] > right) right = x[i];
      if (y[i] < low) low = y[i];
      if (y[i] > high) high = y[i];
    }
    this.fitted = this.count;
    const now = from ? this.range : null;
    if (now && left >= now[0] && right <= now[1] && low >= now[2] && high <= now[3]) return false;
    if (!(left <= right)) { this.range ??= [0, 1, 0, 1]; return !now; }
    if (now) { left = Math.min(left, now[0]); right = Math.max(right, now[1]); low = Math.min(low, now[2]); high = Math.max(high, now[3]); }
    const room = (a, b) => (b - a) * ROOM || Math.abs(b) * ROOM || 1;
    const wide = room(left, right), tall = room(low, high);
    this.range = [left >= 0 ? Math.max(0, left - wide) : left - wide, right + wide, low >= 0 ? Math.max(0, low - tall) : low - tall, high + tall];
    return true;
  }

  stampSize(count) { return count < 3000 ? 5 : count < 20000 ? 3 : 2; }

  scales() {
    const { ratio } = this, [left, right, low, high] = this.range;
    const width = Math.max(8, Math.round((this.width - LEFT - RIGHT) * ratio)), height = Math.max(8, Math.round((this.height - TOP - BOTTOM) * ratio));
    return { width, height, left, low, across: (width - 1) / (right - left), up: (height - 1) / (high - low), x0: Math.round(LEFT * ratio), y0: Math.round(TOP * ratio) };
  }

  redraw() {
    if (!this.width) return;
    const started = performance.now();
    if (!this.range) this.fit();
    this.look = isDark() ? DARK : LIGHT;
    this.at = this.scales();
    const { width, height } = this.at;
    if (this.density?.length === width * height) this.density.fill(0); else { this.density = new Uint16Array(width * height); this.image = null; }
    this.image ??= new ImageData(width, height);
    this.colours = new Uint32Array(this.image.data.buffer);
    this.columns = Math.ceil(width / (CELL * this.ratio)); this.rows = Math.ceil(height / (CELL * this.ratio));
    this.heads = new Int32Array(this.columns * this.rows).fill(-1);
    this.most = 1; this.shades = null;
    this.stamp(0); this.axesDrawn(); this.shade(); this.drawOver();
    this.cost = performance.now() - started;
  }

  stamp(first) {
    const { x, y, next, heads, density, columns } = this, { width, height, left, low, across, up } = this.at;
    const size = this.stampSize(this.count), back = size >> 1, cell = CELL * this.ratio;
    let most = this.most;
    for (let i = first; i < this.count; i++) {
      const px = ((x[i] - left) * across + 0.5) | 0, py = (height - 1 - (y[i] - low) * up + 0.5) | 0;
      if (!(px >= 0 && px < width && py >= 0 && py < height) || x[i] !== x[i] || y[i] !== y[i]) { next[i] = -2; continue; }
      const home = ((py / cell) | 0) * columns + ((px / cell) | 0);
      next[i] = heads[home]; heads[home] = i;
      const right = Math.min(px - back + size, width), bottom = Math.min(py - back + size, height);
      for (let v = Math.max(py - back, 0); v < bottom; v++)
        for (let u = Math.max(px - back, 0); u < right; u++) {
          if (size === 5 && (v === py - 2 || v === py + 2) && (u === px - 2 || u === px + 2)) continue; // round
          const value = density[v * width + u];
          if (value < 65535) { density[v * width + u] = value + 1; if (value + 1 > most) most = value + 1; }
        }
    }
    this.most = most;
  }

  // The grey is the logarithm of the density: single runs can be seen, and so can clouds of thousands.
  shade() {
    const { density, colours, most } = this, { paper, pale, deep } = this.look;
    if (!this.shades || this.shades.length <= most) {
      const room = Math.min(65535, Math.max(most * 2, 8)), shades = new Uint32Array(room + 1), whole = Math.log(room + 1);
      const word = (r, g, b) => (255 << 24) | (b << 16) | (g << 8) | r;
      shades[0] = word(...paper);
      for (let d = 1; d <= room; d++) { const part = Math.log(d) / whole; shades[d] = word(...pale.map((from, k) => Math.round(from + (deep[k] - from) * part))); }
      this.shades = shades;
    }
    const { shades } = this;
    for (let p = 0; p < density.length; p++) colours[p] = shades[density[p]];
    this.back.putImageData(this.image, this.at.x0, this.at.y0);
  }

  axesDrawn() {
    const { back, look, ratio } = this, width = this.width, height = this.height;
    back.setTransform(ratio, 0, 0, ratio, 0, 0);
    back.fillStyle = `rgb(${look.paper.join(" ")})`; back.fillRect(0, 0, width, height);
    back.fillStyle = look.soft; back.strokeStyle = look.soft; back.lineWidth = 1; back.font = `12px ${this.font}`;
    const [left, right, low, high] = this.range;
    this.ticks = { across: ticks(left, right, width < 520 ? 4 : 7), up: ticks(low, high, 6) };
    back.textAlign = "center"; back.textBaseline = "top";
    for (const [value, text] of this.ticks.across) back.fillText(text, this.pixelX(value), height - BOTTOM + 8);
    back.textAlign = "right"; back.textBaseline = "middle";
    for (const [value, text] of this.ticks.up) back.fillText(text, LEFT - 8, this.pixelY(value));
    back.fillStyle = look.ink; back.font = `600 12px ${this.font}`;
    back.textAlign = "right"; back.textBaseline = "bottom";
    back.fillText(`${this.axes[0]} →`, width - RIGHT, height - 4);
    back.save(); back.translate(13, TOP); back.rotate(-Math.PI / 2); back.textAlign = "right"; back.textBaseline = "middle";
    back.fillText(`${this.axes[1]} →`, 0, 0); back.restore();
    back.setTransform(1, 0, 0, 1, 0, 0);
  }

  pixelX(value) { return LEFT + (value - this.range[0]) * this.at.across / this.ratio; }
  pixelY(value) { return TOP + (this.at.height - 1 - (value - this.range[2]) * this.at.up) / this.ratio; }

  drawOver() {
    if (!this.at) return;
    const { front, look, ratio } = this;
    front.setTransform(ratio, 0, 0, ratio, 0, 0);
    front.clearRect(0, 0, this.width, this.height);
    const right = this.width - RIGHT, bottom = this.height - BOTTOM;
    front.strokeStyle = look.line; front.lineWidth = 1; front.beginPath();
    for (const [value] of this.ticks.across) { front.moveTo(this.pixelX(value), TOP); front.lineTo(this.pixelX(value), bottom); }
    for (const [value] of this.ticks.up) { front.moveTo(LEFT, this.pixelY(value)); front.lineTo(right, this.pixelY(value)); }
    front.stroke();
    front.save(); front.beginPath(); front.rect(LEFT - 6, TOP - 6, right - LEFT + 12, bottom - TOP + 12); front.clip();
    if (this.limit !== null) this.line([[this.range[0], this.limit], [this.range[1], this.limit]], look.pin, [2, 4], 1.5);
    if (this.predicted.length > 1) this.line(this.predicted, look.predicted, [7, 5], 1.5);
    this.steps();
    for (const id of this.pins) if (this.places.has(id)) this.diamond(this.places.get(id));
    if (this.chosen >= 0) this.ring(this.chosen, 8, look.accent, 2.5);
    if (this.hovered >= 0 && this.hovered !== this.chosen) this.ring(this.hovered, 6, look.ink, 1.5);
    front.restore();
    if (this.brush) this.box();
    front.setTransform(1, 0, 0, 1, 0, 0);
  }

  line(points, colour, dash, width) {
    const { front } = this;
    front.strokeStyle = colour; front.lineWidth = width; front.setLineDash(dash); front.beginPath();
    for (const [x, y] of points) front.lineTo(this.pixelX(x), this.pixelY(y));
    front.stroke(); front.setLineDash([]);
  }

  steps() {
    const { front, look, frontier, x, y } = this;
    front.strokeStyle = look.accent; front.fillStyle = look.accent; front.lineWidth = 1.5; front.beginPath();
    let before = null;
    for (const i of frontier) {
      const px = this.pixelX(x[i]), py = this.pixelY(y[i]);
      if (before === null) front.moveTo(px, py); else { front.lineTo(px, before); front.lineTo(px, py); }
      before = py;
    }
    front.stroke();
    front.beginPath();
    for (const i of frontier) { const px = this.pixelX(x[i]), py = this.pixelY(y[i]); front.moveTo(px + 3, py); front.arc(px, py, 3, 0, 7); }
    front.fill();
  }

  ring(i, radius, colour, width) {
    const { front } = this;
    front.strokeStyle = colour; front.lineWidth = width; front.beginPath(); front.arc(this.pixelX(this.x[i]), this.pixelY(this.y[i]), radius, 0, 7); front.stroke();
  }

  diamond(i) {
    const { front } = this, px = this.pixelX(this.x[i]), py = this.pixelY(this.y[i]);
    front.strokeStyle = this.look.pin; front.lineWidth = 2; front.beginPath();
    front.moveTo(px, py - 8); front.lineTo(px + 8, py); front.lineTo(px, py + 8); front.lineTo(px - 8, py); front.closePath(); front.stroke();
  }

  box() {
    const { front, look } = this, [a, b, c, d] = this.brush;
    front.fillStyle = look.accent; front.globalAlpha = 0.12; front.fillRect(a, b, c - a, d - b); front.globalAlpha = 1;
    front.strokeStyle = look.accent; front.lineWidth = 1; front.strokeRect(a, b, c - a, d - b);
  }

  // The candidate nearest to a place, in CSS pixels; one of the frontier goes before others that are as near.
  nearest(px, py) {
    if (!this.at) return -1;
    let best = -1, least = REACH ** 2;
    const look = (i, worth) => { const d = ((this.pixelX(this.x[i]) - px) ** 2 + (this.pixelY(this.y[i]) - py) ** 2) * worth; if (d < least) { least = d; best = i; } };
    const column = ((px - LEFT) / CELL) | 0, row = ((py - TOP) / CELL) | 0;
    const { x, y, next, heads } = this, { across, up, left, low, height } = this.at, { ratio } = this;
    for (let r = Math.max(0, row - 1); r <= Math.min(this.rows - 1, row + 1); r++)
      for (let c = Math.max(0, column - 1); c <= Math.min(this.columns - 1, column + 1); c++)
        for (let i = heads[r * this.columns + c]; i >= 0; i = next[i]) {
          const u = LEFT + (x[i] - left) * across / ratio - px, v = TOP + (height - 1 - (y[i] - low) * up) / ratio - py, d = u * u + v * v;
          if (d < least) { least = d; best = i; }
        }
    for (const i of this.frontier) look(i, 0.4);
    return best;
  }

  within() {
    const [a, b, c, d] = this.brush, { left, low, across, up, height } = this.at, { ratio, x, y } = this;
    const x0 = left + (a - LEFT) * ratio / across, x1 = left + (c - LEFT) * ratio / across;
    const y1 = low + (height - 1 - (b - TOP) * ratio) / up, y0 = low + (height - 1 - (d - TOP) * ratio) / up;
    let count = 0;
    for (let i = 0; i < this.count; i++) if (x[i] >= x0 && x[i] <= x1 && y[i] >= y0 && y[i] <= y1) count++;
    return { count, frontier: this.frontier.filter((i) => x[i] >= x0 && x[i] <= x1 && y[i] >= y0 && y[i] <= y1).length, range: [x0, x1, y0, y1] };
  }

  zoomIn() {
    if (!this.brush) return;
    const [a, b, c, d] = this.within().range;
    if (!(b > a && d > c)) return;
    this.zoom = this.range = [a, b, c, d]; this.range.zoomed = true; this.brush = null;
    this.redraw(); this.told("brush", null);
  }

  zoomOut() { this.zoom = this.range = this.brush = null; this.fit(); this.redraw(); this.told("brush", null); }

  choose(i) { this.chosen = i; this.drawOver(); if (i >= 0) this.told("choose", this.ids[i], i); }
  chooseId(id) { const i = this.places.get(id); if (i !== undefined) { this.chosen = i; this.drawOver(); } }

  listen() {
    const { over } = this;
    const spot = (event) => { const box = over.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let from = null;
    over.addEventListener("pointermove", (event) => {
      const [px, py] = spot(event);
      if (from) {
        const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
        const u = clamp(px, LEFT, this.width - RIGHT), v = clamp(py, TOP, this.height - BOTTOM);
        if (Math.hypot(u - from[0], v - from[1]) > 5) { this.brush = [Math.min(from[0], u), Math.min(from[1], v), Math.max(from[0], u), Math.max(from[1], v)]; this.drawOver(); this.told("brush", this.within()); }
        return;
      }
      const started = performance.now(), i = this.nearest(px, py);
      if (i !== this.hovered) { this.hovered = i; this.drawOver(); }
      this.hover = performance.now() - started;
      this.told("hover", i, px, py);
    });
    over.addEventListener("pointerleave", () => { this.hovered = -1; this.drawOver(); this.told("hover", -1); });
    over.addEventListener("pointerdown", (event) => { if (event.button) return; from = spot(event); try { over.setPointerCapture(event.pointerId); } catch { /* a pointer of a test */ } });
    over.addEventListener("pointerup", (event) => {
      const [px, py] = spot(event), moved = from && Math.hypot(px - from[0], py - from[1]) > 5;
      from = null;
      if (moved) return;
      if (this.brush) { this.brush = null; this.told("brush", null); }
      const i = this.nearest(px, py);
      if (i >= 0) this.choose(i); else this.drawOver();
    });
    over.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event)) { event.preventDefault(); event.stopPropagation(); } });
  }

  key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (this.brush && arrows[event.key]) return this.moveBox(arrows[event.key], event.shiftKey);
    const { frontier } = this, here = frontier.indexOf(this.chosen), last = frontier.length - 1;
    const go = { ArrowLeft: here < 0 ? 0 : Math.max(0, here - 1), ArrowRight: here < 0 ? 0 : Math.min(last, here + 1), Home: 0, End: last }[event.key];
    if (go !== undefined && last >= 0) { this.choose(frontier[go]); return true; }
    const keys = {
      Enter: () => (this.brush ? this.zoomIn() : this.told("open")), p: () => this.told("pin"), c: () => this.told("compare"),
      b: () => { if (!this.brush) { const w = this.width - LEFT - RIGHT, h = this.height - TOP - BOTTOM; this.brush = [LEFT + w / 4, TOP + h / 2, LEFT + w / 2, TOP + h * 0.85]; } else this.brush = null; this.drawOver(); this.told("brush", this.brush && this.within()); },
      z: () => (this.brush ? this.zoomIn() : this.zoomOut()), Escape: () => { if (this.brush) { this.brush = null; this.drawOver(); this.told("brush", null); } else this.zoomOut(); },
    };
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    act?.();
    return Boolean(act);
  }

  moveBox([dx, dy], grow) {
    const step = 12, [a, b, c, d] = this.brush, right = this.width - RIGHT, bottom = this.height - BOTTOM;
    const u = Math.max(grow ? a + step - c : LEFT - a, Math.min(dx * step, right - c)), v = Math.max(grow ? b + step - d : TOP - b, Math.min(dy * step, bottom - d));
    this.brush = grow ? [a, b, c + u, d + v] : [a + u, b + v, c + u, d + v];
    this.drawOver(); this.told("brush", this.within());
    return true;
  }
}

// Round numbers on an axis, with the digits that their distance needs.
function ticks(low, high, about) {
  const raw = (high - low) / about, base = 10 ** Math.floor(Math.log10(raw)), step = base * ([1, 2, 5, 10].find((f) => f * base >= raw) ?? 10);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), made = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) made.push([k * step, digits > 6 ? (k * step).toPrecision(3) : (k * step).toFixed(digits)]);
  return made;
}

// Twelve bytes a candidate: its number, then loss and risk.
export function unpack(buffer) {
  const count = Math.floor(buffer.byteLength / 12), view = new DataView(buffer);
  const ids = new Uint32Array(count), loss = new Float32Array(count), risk = new Float32Array(count);
  for (let i = 0; i < count; i++) { ids[i] = view.getUint32(12 * i, true); loss[i] = view.getFloat32(12 * i + 4, true); risk[i] = view.getFloat32(12 * i + 8, true); }
  return [ids, loss, risk];
}
